// SPDX-License-Identifier: GPL-2.0
/*
 * Where to promote to.
 *
 * The node that accessed the page, if it is DRAM, allowed and has room; else
 * the nearest one to it that is and has; else kswapd is woken on the best of
 * those that are full, and the page waits. Never a node that the memcg of the
 * folio excludes, or the policy of a VMA that maps it or the owner of such an address
 * space; page cache: that all of these exclude.
 */
#define pr_fmt(fmt) "pghot: " fmt

#include <linux/cpuset.h>
#include <linux/memcontrol.h>
#include <linux/memory-tiers.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/secretmem.h>
#include <linux/spinlock.h>
#include <linux/swap.h>
#include <linux/topology.h>

#include "../internal.h"
#include "../page_alloc.h"
#include "internal.h"

/* A node on which reclaim has given up is tried again after this time. */
#define PGHOT_REVIVAL_INTERVAL	(10 * HZ)

/* DRAM nodes: those with memory in the top tier. */
static nodemask_t pghot_dram __read_mostly = NODE_MASK_NONE;
static DEFINE_SPINLOCK(pghot_dram_lock);

/*
 * The DRAM node nearest to each node, as records have it. Written with
 * pghot_lock held, read from any context.
 */
u8 pghot_node_index[MAX_NUMNODES] __read_mostly = {
	[0 ... MAX_NUMNODES - 1] = PGHOT_NODE_NONE,
};

/*
 * What node an index means. An index is given out once and never changes, or
 * records would change their meaning.
 */
static int pghot_index_nid[PGHOT_NR_DRAM] __read_mostly = {
	[0 ... PGHOT_NR_DRAM - 1] = NUMA_NO_NODE,
};

int pghot_distance(int from, int to)
{
	return node_distance(from, to);
}

/* The node in @mask that is nearest to @from; of equals, the first one. */
int pghot_nearest(int from, const nodemask_t *mask, int (*distance)(int a, int b))
{
	int nid, d, best = NUMA_NO_NODE, best_distance = INT_MAX;

	for_each_node_mask(nid, *mask) {
		d = distance(from, nid);
		if (d < best_distance) {
			best = nid;
			best_distance = d;
		}
	}
	return best;
}

void pghot_dram_nodes(nodemask_t *mask)
{
	guard(spinlock)(&pghot_dram_lock);
	*mask = pghot_dram;
}

/* Is any of @nodes a DRAM node? Any context. */
bool pghot_nodes_have_dram(const nodemask_t *nodes)
{
	/*
	 * Takes no lock, as it may be asked at each page fault: while nodes come
	 * or go, either answer will do.
	 */
	return data_race(nodes_intersects(pghot_dram, *nodes));
}

/*
 * May the current task use any DRAM node? For sources that see the task that
 * accesses.
 */
bool pghot_current_may_use_dram(void)
{
	return pghot_nodes_have_dram(&cpuset_current_mems_allowed);
}

static unsigned int pghot_index_for(int nid)
{
	unsigned int i;

	for (i = 0; i < PGHOT_NR_DRAM; i++) {
		if (pghot_index_nid[i] == NUMA_NO_NODE)
			WRITE_ONCE(pghot_index_nid[i], nid);
		if (pghot_index_nid[i] == nid)
			return i;
	}
	pr_warn_once("more than %d DRAM nodes: pages used from node %d go to the one nearest to them\n",
		     PGHOT_NR_DRAM, nid);
	return PGHOT_NODE_NONE;
}

int pghot_index_to_node(unsigned int index)
{
	return index < PGHOT_NR_DRAM ? READ_ONCE(pghot_index_nid[index]) :
				       NUMA_NO_NODE;
}

/* Nodes, their tiers or their memory changed. */
void pghot_targets_update(void)
{
	nodemask_t dram = NODE_MASK_NONE;
	int nid, nearest;

	lockdep_assert_held(&pghot_lock);

	for_each_node_state(nid, N_MEMORY)
		if (node_is_toptier(nid))
			node_set(nid, dram);

	scoped_guard(spinlock, &pghot_dram_lock)
		pghot_dram = dram;

	for_each_online_node(nid) {
		nearest = pghot_nearest(nid, &dram, pghot_distance);
		WRITE_ONCE(pghot_node_index[nid],
			   nearest == NUMA_NO_NODE ? PGHOT_NODE_NONE :
						     pghot_index_for(nearest));
	}
}

/* Highest zone that user pages of @pgdat come from, or NULL. */
static struct zone *pghot_highest_zone(pg_data_t *pgdat)
{
	int z;

	for (z = MAX_NR_ZONES - 1; z >= 0; z--)
		if (z <= ZONE_MOVABLE && managed_zone(pgdat->node_zones + z))
			return pgdat->node_zones + z;
	return NULL;
}

/*
 * May a folio of @order be allocated on @nid, @nr_pages with what is on its way,
 * without kswapd having to run? The mark is that of NUMA balancing's promotion.
 */
static bool pghot_has_room(int nid, unsigned int order, unsigned long nr_pages)
{
	pg_data_t *pgdat = NODE_DATA(nid);
	int z;

	for (z = ZONE_MOVABLE; z >= 0; z--) {
		struct zone *zone = pgdat->node_zones + z;

		if (managed_zone(zone) &&
		    zone_watermark_ok(zone, order,
				      high_wmark_pages(zone) + nr_pages,
				      ZONE_MOVABLE, ALLOC_CMA))
			return true;
	}
	return false;
}

/*
 * Ask kswapd to make room on @nid, at most once a cycle. Where reclaim has given
 * up, have it tried again from time to time: what could not be reclaimed then
 * may be reclaimable now.
 */
void pghot_wake_reclaim(struct pghot_cycle *c, int nid, unsigned int order)
{
	struct zone *zone = pghot_highest_zone(NODE_DATA(nid));
	struct pghot_target *target = &c->targets[nid];

	if (!zone || node_isset(nid, c->woken))
		return;
	node_set(nid, c->woken);

	if (kswapd_test_hopeless(NODE_DATA(nid)) &&
	    time_after(jiffies, target->last_revival + PGHOT_REVIVAL_INTERVAL)) {
		target->last_revival = jiffies;
		kswapd_clear_hopeless(NODE_DATA(nid), KSWAPD_CLEAR_HOPELESS_OTHER);
	}
	wakeup_kswapd(zone, 0, order, ZONE_MOVABLE);
}

/*
 * A folio that more address spaces have than this belongs to nobody in
 * particular: asking the first ones is enough.
 */
#define PGHOT_MAX_OWNERS	64

/*
 * Memory of programs has to be where all who have it want it. Page cache belongs to
 * the file, and policies of VMAs do not govern it: one who has it mapped and lets it
 * go to a node is enough, or anybody could hold the text of all others in slow
 * memory.
 */
struct pghot_allowed {
	nodemask_t	mask;
	nodemask_t	any;
	int		nid;		/* where the folio is */
	bool		page_cache;
	bool		busy;
	unsigned int	nr_asked;
};

static void pghot_apply_policy(struct mempolicy *pol, int nid, nodemask_t *mask)
{
	switch (pol->mode) {
	case MPOL_BIND:
	case MPOL_PREFERRED:
	case MPOL_PREFERRED_MANY:
		nodes_and(*mask, *mask, pol->nodes);
		break;
	case MPOL_INTERLEAVE:
	case MPOL_WEIGHTED_INTERLEAVE:
		/* The page may be where the policy wants it. */
		if (node_isset(nid, pol->nodes))
			nodes_clear(*mask);
		else
			nodes_and(*mask, *mask, pol->nodes);
		break;
	default:
		break;
	}
}

/* What the owner of @mm may use. Other threads may have policies of their own. */
static void pghot_apply_owner(struct mm_struct *mm, bool policy, int nid,
			      nodemask_t *mask)
{
#ifdef CONFIG_MEMCG
	struct task_struct *owner;

	guard(rcu)();
	owner = rcu_dereference(mm->owner);
	if (!owner)
		return;

	task_lock(owner);
	if (policy && owner->mempolicy)
		pghot_apply_policy(owner->mempolicy, nid, mask);
#ifdef CONFIG_CPUSETS
	nodes_and(*mask, *mask, owner->mems_allowed);
#endif
	task_unlock(owner);
#endif
}

static void pghot_apply_vma(struct vm_area_struct *vma, unsigned long addr,
			    int nid, nodemask_t *mask)
{
	struct mempolicy *pol;
	pgoff_t ilx;

	pol = __get_vma_policy(vma, addr, &ilx);
	if (pol) {
		pghot_apply_policy(pol, nid, mask);
		mpol_cond_put(pol);
	}
	pghot_apply_owner(vma->vm_mm, !pol, nid, mask);
}

/*
 * The same with what keeps vma->vm_policy. It is not waited for, as rmap locks nest
 * inside; a program that changes its mappings all the time leaves most of them alone.
 *
 * The mm may be one that nobody uses any more, or not yet. The rmap lock is held, so
 * that the VMA is not unlinked and the tree of which it is a part not freed; but nodes
 * of a tree that is not in RCU mode may change under a reader.
 */
static bool pghot_try_vma(struct vm_area_struct *vma, unsigned long addr,
			  int nid, nodemask_t *mask)
{
	struct vm_area_struct *locked;

	if (mmap_read_trylock(vma->vm_mm)) {
		pghot_apply_vma(vma, addr, nid, mask);
		mmap_read_unlock(vma->vm_mm);
		return true;
	}

	if (!mt_in_rcu(&vma->vm_mm->mm_mt))
		return false;
	locked = lock_vma_under_rcu(vma->vm_mm, addr);
	if (!locked)
		return false;
	if (locked == vma)
		pghot_apply_vma(vma, addr, nid, mask);
	vma_end_read(locked);
	return locked == vma;
}

static bool pghot_allowed_one(struct folio *folio, struct vm_area_struct *vma,
			      unsigned long addr, void *arg)
{
	struct pghot_allowed *allowed = arg;
	nodemask_t mask = allowed->mask;
	bool more = ++allowed->nr_asked < PGHOT_MAX_OWNERS;

	/* So many, and there may be more: nobody in particular has a say. */
	if (allowed->page_cache && !more) {
		allowed->any = mask;
		return false;
	}
	if (!pghot_try_vma(vma, addr, allowed->nid, &mask)) {
		allowed->busy = true;
		return allowed->page_cache;
	}

	/* Go on while it makes a difference. */
	if (allowed->page_cache) {
		nodes_or(allowed->any, allowed->any, mask);
		return !nodes_equal(allowed->any, allowed->mask);
	}
	allowed->mask = mask;
	return more && !nodes_empty(mask);
}

/*
 * Can the locked @folio be migrated without waiting, as far as its file goes?
 * Returns 0, -EAGAIN if not now, or -EBUSY if never.
 */
static int pghot_folio_movable(struct folio *folio)
{
	struct address_space *mapping = folio_mapping(folio);

	if (!mapping)
		return 0;
	if (mapping_inaccessible(mapping) || secretmem_mapping(mapping))
		return -EBUSY;
	if (folio_test_dirty(folio) && !mapping->a_ops->migrate_folio)
		return -EAGAIN;
	return 0;
}

/*
 * Remove the nodes from @mask that @folio must not be on. VMAs that cover its
 * place are asked, also those that have a copy of their own by now.
 *
 * Returns 0, -EAGAIN if that cannot be known now, or -EBUSY if the folio cannot
 * be migrated.
 */
static int pghot_folio_allowed(struct folio *folio, nodemask_t *mask)
{
	struct pghot_allowed allowed = {
		.nid		= folio_nid(folio),
		.page_cache	= !folio_test_anon(folio) && folio_is_file_lru(folio),
	};
	struct rmap_walk_control rwc = {
		.arg		= &allowed,
		.rmap_one	= pghot_allowed_one,
		.anon_lock	= folio_lock_anon_vma_read,
		.try_lock	= true,
	};
	struct mem_cgroup *memcg;
	int err;

	memcg = get_mem_cgroup_from_folio(folio);
	mem_cgroup_node_filter_allowed(memcg, mask);
	mem_cgroup_put(memcg);

	if (!folio_trylock(folio))
		return -EAGAIN;
	err = pghot_folio_movable(folio);
	allowed.mask = *mask;
	if (!err && folio_mapped(folio) && !nodes_empty(*mask))
		rmap_walk(folio, &rwc);
	folio_unlock(folio);

	if (err)
		return err;
	if (allowed.page_cache && allowed.nr_asked)
		allowed.mask = allowed.any;
	*mask = allowed.mask;
	/* One who lets page cache go is enough, whatever the others would say. */
	if (rwc.contended || (allowed.busy && nodes_empty(allowed.any)))
		return -EAGAIN;
	return 0;
}

/*
 * Choose the node to promote @folio to, @rec being its record.
 *
 * Returns the node or
 *   -EAGAIN  it cannot be told now,
 *   -EBUSY   the folio cannot be migrated,
 *   -EACCES  no node is allowed,
 *   -ENOSPC  no allowed node has room; reclaim was woken on the nearest one.
 */
int pghot_choose_target(struct pghot_cycle *c, struct folio *folio, u16 rec)
{
	unsigned int order = folio_order(folio);
	int nid, err, from, first = NUMA_NO_NODE;
	nodemask_t mask = c->dram;

	err = pghot_folio_allowed(folio, &mask);
	if (err)
		return err;

	from = pghot_index_to_node(pghot_rec_node(rec));
	if (from == NUMA_NO_NODE)
		from = c->node->nid;

	while ((nid = pghot_nearest(from, &mask, pghot_distance)) != NUMA_NO_NODE) {
		if (!node_isset(nid, c->full) &&
		    pghot_has_room(nid, order, c->targets[nid].nr_pages + (1UL << order)))
			return nid;
		if (first == NUMA_NO_NODE)
			first = nid;
		/* Room only gets less in a cycle: do not ask again. */
		if (!order)
			node_set(nid, c->full);
		node_clear(nid, mask);
	}
	if (first == NUMA_NO_NODE)
		return -EACCES;

	pghot_wake_reclaim(c, first, order);
	return -ENOSPC;
}
