// SPDX-License-Identifier: GPL-2.0
/*
 * Migration of a batch of isolated folios to one node.
 *
 * A batch mixes memcgs, and migrate_pages() tells one sum for all. So each
 * folio's memcg is remembered when its new folio is allocated, and forgotten
 * when that is given back: what is left at the end has arrived, and is counted
 * where it belongs. Batches need not be cut where the memcg changes.
 */
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/vmstat.h>

#include "internal.h"

#include <trace/events/pghot.h>

/* What migrate_pages() hands through to the two callbacks. */
struct pghot_batch {
	struct pghot_cycle	*c;
	int			nid;
};

static u16 *pghot_record(unsigned long pfn)
{
	struct pghot_section *sec;

	/* Sections of this node stay as long as the cycle holds its lock. */
	guard(rcu)();
	sec = pghot_section_of(pfn);
	return sec ? &sec->records[pfn - sec->start_pfn] : NULL;
}

static struct folio *pghot_new_folio(struct folio *src, unsigned long private)
{
	struct pghot_batch *b = (struct pghot_batch *)private;
	unsigned int order = folio_order(src);
	struct pghot_move *move;
	struct folio *dst;
	gfp_t gfp;
	u16 *rec;

	if (b->c->nr_moves == PGHOT_MAX_BATCH)
		return NULL;

	/* Never reclaims: that is up to kswapd of the target. */
	if (order)
		gfp = GFP_TRANSHUGE_LIGHT;
	else
		gfp = (GFP_HIGHUSER_MOVABLE & ~__GFP_RECLAIM) |
		      __GFP_NOMEMALLOC | __GFP_NORETRY | __GFP_NOWARN;
	dst = __folio_alloc_node(gfp | __GFP_THISNODE, order, b->nid);
	if (!dst) {
		/* Room, but not in one piece, or taken since: have it made. */
		pghot_wake_reclaim(b->c, b->nid, order);
		return NULL;
	}

	move = &b->c->moves[b->c->nr_moves++];
	rec = pghot_record(folio_pfn(src));
	move->dst = dst;
	move->memcg = get_mem_cgroup_from_folio(src);
	move->pfn = folio_pfn(src);
	move->nr_pages = folio_nr_pages(src);
	move->rec = rec ? READ_ONCE(*rec) : 0;
	return dst;
}

static void pghot_put_folio(struct folio *dst, unsigned long private)
{
	struct pghot_batch *b = (struct pghot_batch *)private;
	struct pghot_move *moves = b->c->moves;
	unsigned int i = b->c->nr_moves;

	/* Mostly one of the last. */
	while (i--) {
		if (moves[i].dst != dst)
			continue;
		mem_cgroup_put(moves[i].memcg);
		moves[i] = moves[--b->c->nr_moves];
		break;
	}
	folio_put(dst);
}

/* Count @nr_pages that arrived on @nid, all of @memcg. */
static void pghot_account(struct mem_cgroup *memcg, int nid, unsigned int nr_pages)
{
	mod_lruvec_state(mem_cgroup_lruvec(memcg, NODE_DATA(nid)),
			 PGPROMOTE_SUCCESS, nr_pages);
#ifdef CONFIG_NUMA_BALANCING
	count_vm_numa_events(NUMA_PAGE_MIGRATE, nr_pages);
	count_memcg_events(memcg, NUMA_PAGE_MIGRATE, nr_pages);
#endif
}

/* The page has left: its record must not speak for who comes next. */
static void pghot_forget(struct pghot_move *move)
{
	u16 *rec = pghot_record(move->pfn);

	/* It was touched again, or the frame is in use again: leave it. */
	if (rec)
		cmpxchg(rec, move->rec, 0);
}

/*
 * Migrate the folios that wait for @dst_nid. Those that did not arrive are put
 * back to the LRU and become candidates again.
 *
 * Context: process; the lock of the node is held.
 * Return: pages that arrived.
 */
unsigned int pghot_migrate_folios(struct pghot_cycle *c, int dst_nid)
{
	struct pghot_target *target = &c->targets[dst_nid];
	struct pghot_batch b = { .c = c, .nid = dst_nid };
	unsigned int i, run = 0, promoted = 0;
	struct folio *folio;

	lockdep_assert_held(&c->node->lock);

	c->nr_moves = 0;
	migrate_pages(&target->folios, pghot_new_folio, pghot_put_folio,
		      (unsigned long)&b, MIGRATE_ASYNC, MR_NUMA_MISPLACED, NULL);

	list_for_each_entry(folio, &target->folios, lru)
		pghot_retry(c, folio);
	putback_movable_pages(&target->folios);

	for (i = 0; i < c->nr_moves; i++) {
		struct pghot_move *move = &c->moves[i];

		pghot_forget(move);
		promoted += move->nr_pages;
		run += move->nr_pages;
		if (i + 1 == c->nr_moves || move[1].memcg != move->memcg) {
			pghot_account(move->memcg, dst_nid, run);
			run = 0;
		}
		mem_cgroup_put(move->memcg);
	}

	trace_pghot_promote(c->node->nid, dst_nid, target->nr_folios, promoted);
	target->nr_folios = 0;
	target->nr_pages = 0;
	c->promoted += promoted;
	return promoted;
}
