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

static struct folio *pghot_new_folio(struct folio *src, unsigned long private)
{
	struct pghot_batch *b = (struct pghot_batch *)private;
	unsigned int order = folio_order(src);
	struct pghot_move *move;
	struct folio *dst;
	gfp_t gfp;

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
	move->dst = dst;
	move->memcg = get_mem_cgroup_from_folio(src);
	move->pfn = folio_pfn(src);
	move->nr_pages = folio_nr_pages(src);
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

/*
 * The page at @pfn has left: its record must not speak for who comes next. If the
 * frame is in use again, a touch may get lost.
 */
static void pghot_forget(unsigned long pfn)
{
	struct pghot_section *sec;
	u16 rec, *word;

	guard(rcu)();
	sec = pghot_section_of(pfn);
	if (!sec)
		return;
	word = &sec->records[pfn - sec->start_pfn];
	rec = READ_ONCE(*word);
	/* Reclaim may have put another folio there already. */
	if (pghot_rec_node(rec) != PGHOT_NODE_DEMOTED)
		cmpxchg(word, rec, 0);
}

/* Migrate a list. Returns the pages that arrived. */
static unsigned int pghot_migrate_list(struct pghot_batch *b,
				       struct list_head *folios)
{
	struct pghot_cycle *c = b->c;
	unsigned int i, run = 0, promoted = 0;
	struct folio *folio;

	if (list_empty(folios))
		return 0;

	c->nr_moves = 0;
	migrate_pages(folios, pghot_new_folio, pghot_put_folio, (unsigned long)b,
		      MIGRATE_ASYNC, MR_NUMA_MISPLACED, NULL);

	list_for_each_entry(folio, folios, lru)
		pghot_retry(c, folio);
	putback_movable_pages(folios);

	for (i = 0; i < c->nr_moves; i++) {
		struct pghot_move *move = &c->moves[i];

		pghot_forget(move->pfn);
		promoted += move->nr_pages;
		run += move->nr_pages;
		if (i + 1 == c->nr_moves || move[1].memcg != move->memcg) {
			pghot_account(move->memcg, b->nid, run);
			run = 0;
		}
		mem_cgroup_put(move->memcg);
	}
	return promoted;
}

/*
 * Migrate the folios that wait for @dst_nid. Those that did not arrive are put
 * back to the LRU and become candidates again.
 *
 * migrate_pages() gives up a list at the first folio that gets no memory. Large
 * ones may find none in one piece, so that the small ones go by themselves.
 *
 * Context: process; the lock of the node is held.
 * Return: pages that arrived.
 */
unsigned int pghot_migrate_folios(struct pghot_cycle *c, int dst_nid)
{
	struct pghot_target *target = &c->targets[dst_nid];
	struct pghot_batch b = { .c = c, .nid = dst_nid };
	unsigned int promoted;

	lockdep_assert_held(&c->node->lock);

	promoted = pghot_migrate_list(&b, &target->small);
	promoted += pghot_migrate_list(&b, &target->large);

	/* The others failed, or were freed by their owners. */
	if (promoted < target->nr_pages)
		pghot_bucket_return(&c->node->bucket,
				    (u64)(target->nr_pages - promoted) << PAGE_SHIFT);
	trace_pghot_promote(c->node->nid, dst_nid, target->nr_folios, promoted);
	target->nr_folios = 0;
	target->nr_pages = 0;
	c->promoted += promoted;
	return promoted;
}
