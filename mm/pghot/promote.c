// SPDX-License-Identifier: GPL-2.0
/*
 * A cycle of kmigrated: from candidates to promoted pages.
 *
 * Only sections with candidates are looked at, and in them only pages whose
 * ready bit is set: the work grows with the number of hot pages, not with
 * memory. The bit is cleared when the page is taken, has cooled or can never be
 * promoted; it is set again if the migration failed.
 */
#include <linux/cleanup.h>
#include <linux/kthread.h>
#include <linux/memory-tiers.h>
#include <linux/memory_hotplug.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/sched.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "../internal.h"
#include "internal.h"

#include <trace/events/pghot.h>

static_assert(PGHOT_SKIP_COLD + PGHOT_FAILED == PGHOT_SKIP_FAILED);

/* Pages that sit in another CPU's LRU batch are fetched at most this often. */
#define PGHOT_DRAIN_INTERVAL	HZ

static void pghot_skip(struct pghot_cycle *c, unsigned long pfn,
		       enum pghot_skip why)
{
	pghot_count(c->node->skipped[why], 1);
	count_vm_event(PGHOT_SKIP_COLD + why);
	trace_pghot_skip(c->node->nid, pfn, why);
}

/*
 * Move the sections that the record path queued to the list of work. QUEUED is
 * cleared here and nowhere else, when @queue is free to be used again: a section
 * that is queued while it is on the list of work stays queued for the next cycle.
 */
static void pghot_collect_ready(struct pghot_node *node)
{
	struct pghot_section *sec, *next;

	lockdep_assert_held(&node->lock);

	llist_for_each_entry_safe(sec, next, llist_del_all(&node->ready), queue) {
		list_move_tail(&sec->link, &node->work);
		/*
		 * Release: @next has been read. Pairs with test_and_set_bit()
		 * in pghot_mark_ready(), after which @queue is written.
		 */
		clear_bit_unlock(PGHOT_SECTION_QUEUED, &sec->flags);
	}
	/*
	 * Pairs with the barrier in pghot_mark_ready(), which sets a bit and
	 * then reads QUEUED: the bits are read after this.
	 */
	smp_mb();
}

/*
 * The page is no candidate any more. If it was touched since its record was
 * @rec, it is one again.
 */
static void pghot_clear_ready(struct pghot_section *sec, unsigned long idx,
			      u16 rec)
{
	clear_bit(idx, sec->ready);
	/*
	 * Pairs with the cmpxchg of the record in pghot_touch(), which is
	 * followed by the test of the bit in pghot_mark_ready().
	 */
	smp_mb__after_atomic();
	if (READ_ONCE(sec->records[idx]) != rec)
		pghot_mark_ready(sec, idx);
}

/* Drop a candidate for good, and replace its record by @new. */
static void pghot_drop(struct pghot_section *sec, unsigned long idx, u16 rec,
		       u16 new)
{
	if (cmpxchg(&sec->records[idx], rec, new) == rec)
		rec = new;
	pghot_clear_ready(sec, idx, rec);
}

/*
 * The folio at @pfn with a reference, or NULL and the reason in @why. That it is
 * busy or pinned may change at any time; it saves unmapping it in vain.
 */
static struct folio *pghot_get_folio(struct pghot_cycle *c, unsigned long pfn,
				     enum pghot_skip *why)
{
	struct page *page = pfn_to_online_page(pfn);
	struct folio *folio;

	/* A record belongs to a head page; a tail was a folio of its own once. */
	*why = PGHOT_GONE;
	if (!page || PageTail(page))
		return NULL;

	folio = page_folio(page);
	if (!folio_try_get(folio)) {
		/*
		 * Free, of a slab, which has no references, or frozen for a
		 * moment by a split or a migration.
		 */
		if (page_has_type(page) && !PageBuddy(page))
			*why = PGHOT_UNMOVABLE;
		else if (READ_ONCE(folio->mapping))
			*why = PGHOT_BUSY;
		return NULL;
	}
	if (page_folio(page) != folio)
		goto out;

	*why = PGHOT_UNMOVABLE;
	if (folio_test_hugetlb(folio) || folio_is_zone_device(folio) ||
	    page_has_type(page) || folio_contain_hwpoisoned_page(folio))
		goto out;

	/* In a section that spans nodes, DRAM pages have records too. */
	*why = PGHOT_GONE;
	if (node_is_toptier(folio_nid(folio)))
		goto out;

	if (!folio_test_lru(folio)) {
		/* Not a page of a program or a file, or not any more. */
		if (!folio_test_anon(folio) && !folio_mapping(folio))
			goto out;
		c->nr_off_lru++;
		*why = PGHOT_BUSY;
		goto out;
	}

	*why = PGHOT_PINNED;
	if (folio_maybe_dma_pinned(folio))
		goto out;

	/* Somebody else has a reference, and migration would fail. */
	*why = PGHOT_BUSY;
	if (folio_test_writeback(folio) ||
	    folio_ref_count(folio) > folio_expected_ref_count(folio) + 1)
		goto out;

	return folio;
out:
	folio_put(folio);
	return NULL;
}

/* Migrate what waits for @nid. */
static void pghot_flush(struct pghot_cycle *c, int nid)
{
	struct pghot_node *node = c->node;
	unsigned int promoted;

	if (!c->targets[nid].nr_folios)
		return;

	promoted = pghot_migrate_folios(c, nid);
	pghot_count(node->promoted, promoted);
	if (promoted)
		WRITE_ONCE(node->target, nid);
}

/*
 * Take the candidate at @idx for migration. Returns PGHOT_NR_SKIP if it was
 * taken, else why it was not.
 */
static enum pghot_skip pghot_take(struct pghot_cycle *c, struct pghot_section *sec,
				  unsigned long idx, u16 rec, unsigned int heat)
{
	unsigned long pfn = sec->start_pfn + idx;
	struct pghot_target *target;
	struct folio *folio;
	enum pghot_skip why;
	long nr_pages;
	int nid;

	folio = pghot_get_folio(c, pfn, &why);
	if (!folio)
		return why;

	nid = pghot_choose_target(c, folio, rec);
	if (nid < 0) {
		why = nid == -EACCES ? PGHOT_DENIED :
		      nid == -EBUSY ? PGHOT_UNMOVABLE :
		      nid == -ENOSPC ? PGHOT_NOSPACE : PGHOT_BUSY;
		c->stop |= nodes_subset(c->dram, c->full);
		goto out;
	}

	nr_pages = folio_nr_pages(folio);
	why = PGHOT_RATELIMIT;
	if (!pghot_bucket_take(&c->node->bucket, folio_size(folio))) {
		c->stop = true;
		c->limited = true;
		goto out;
	}

	why = PGHOT_BUSY;
	if (!folio_isolate_lru(folio)) {
		pghot_bucket_return(&c->node->bucket, folio_size(folio));
		goto out;
	}

	node_stat_mod_folio(folio, NR_ISOLATED_ANON + folio_is_file_lru(folio),
			    nr_pages);
	pghot_count(c->node->candidates, nr_pages);
	mod_node_page_state(NODE_DATA(nid), PGPROMOTE_CANDIDATE, nr_pages);
	c->taken_folios++;
	c->taken_pages += nr_pages;
	c->rank.quota -= min_t(unsigned long, c->rank.quota,
			       heat == c->rank.cutoff ? nr_pages : 0);
	/* Before it can be set again by a failure. */
	clear_bit(idx, sec->ready);

	target = &c->targets[nid];
	list_add_tail(&folio->lru, folio_test_large(folio) ? &target->large :
							     &target->small);
	if (!target->nr_folios)
		target->since = jiffies;
	target->nr_folios++;
	target->nr_pages += nr_pages;
	/* Isolation has a reference of its own. */
	folio_put(folio);
	if (target->nr_folios >= READ_ONCE(pghot_knobs.kmigrated_batch_nr) ||
	    target->nr_pages >= PGHOT_MAX_BATCH)
		pghot_flush(c, nid);
	return PGHOT_NR_SKIP;
out:
	folio_put(folio);
	return why;
}

/*
 * A folio of a batch was not migrated, and is about to go back to the LRU: make
 * it a candidate again.
 */
void pghot_retry(struct pghot_cycle *c, struct folio *folio)
{
	unsigned long idx, pfn = folio_pfn(folio);
	struct pghot_section *sec;
	unsigned int heat;

	pghot_skip(c, pfn, PGHOT_FAILED);

	guard(rcu)();
	sec = pghot_section_of(pfn);
	if (!sec)
		return;
	idx = pfn - sec->start_pfn;
	heat = pghot_rec_heat_grace(READ_ONCE(sec->records[idx]), c->epoch);
	c->stuck.pages[heat] += folio_nr_pages(folio);
	set_bit(idx, sec->ready);
	if (list_empty(&sec->link))
		list_add_tail(&sec->link, &c->node->work);
}

/* Pages of the folio at @pfn, a guess; 1 if it is gone. */
static unsigned long pghot_folio_pages(unsigned long pfn)
{
	struct page *page = pfn_to_online_page(pfn);

	return page ? pghot_nr_pages(page) : 1;
}

static void pghot_visit(struct pghot_cycle *c, struct pghot_section *sec,
			unsigned long idx)
{
	unsigned long pfn = sec->start_pfn + idx;
	u16 rec = READ_ONCE(sec->records[idx]);
	unsigned int heat = pghot_rec_heat_grace(rec, c->epoch);
	enum pghot_skip why;

	c->looks++;

	if (heat < c->threshold) {
		pghot_clear_ready(sec, idx, rec);
		pghot_skip(c, pfn, PGHOT_COLD);
		return;
	}
	if (c->hold != PGHOT_NR_SKIP) {
		pghot_skip(c, pfn, c->hold);
		return;
	}
	if (heat < c->rank.cutoff || (heat == c->rank.cutoff && !c->rank.quota)) {
		pghot_skip(c, pfn, PGHOT_RATELIMIT);
		return;
	}

	why = pghot_take(c, sec, idx, rec, heat);
	switch (why) {
	case PGHOT_NR_SKIP:
		return;
	case PGHOT_GONE:
		/* The heat was that of another page. */
		pghot_drop(sec, idx, rec, 0);
		break;
	case PGHOT_UNMOVABLE:
	case PGHOT_DENIED:
		/* A touch must not bring the page back for a while. */
		pghot_drop(sec, idx, rec, pghot_rec_denied(c->epoch));
		break;
	case PGHOT_RATELIMIT:
		break;
	default:
		c->stuck.pages[heat] += pghot_folio_pages(pfn);
		break;
	}
	pghot_skip(c, pfn, why);
}

/*
 * Migrate what has been waiting since an earlier jiffy. A folio that is isolated
 * misses its owner's change of mind (mbind(), cpusets) and reclaim's attention:
 * let that not be long.
 */
static void pghot_flush_old(struct pghot_cycle *c)
{
	int nid;

	for_each_node_mask(nid, c->dram)
		if (c->targets[nid].nr_folios &&
		    time_after(jiffies, c->targets[nid].since))
			pghot_flush(c, nid);
}

/* Visit the candidates of a section. */
static void pghot_scan_section(struct pghot_cycle *c, struct pghot_section *sec)
{
	unsigned long idx;

	/* Records may be touched in an epoch that began since the last one. */
	c->epoch = pghot_epoch(jiffies);

	for_each_set_bit(idx, sec->ready, PAGES_PER_SECTION) {
		if (c->stop || kthread_should_stop())
			return;
		pghot_visit(c, sec, idx);
		pghot_flush_old(c);
		cond_resched();
	}
}

/* Count the pages of all candidates by heat. */
static void pghot_rank_candidates(struct pghot_cycle *c)
{
	struct pghot_section *sec;
	unsigned long idx;
	unsigned int heat;
	u16 rec;

	memset(&c->rank, 0, sizeof(c->rank));
	list_for_each_entry(sec, &c->node->work, link) {
		if (kthread_should_stop())
			break;
		for_each_set_bit(idx, sec->ready, PAGES_PER_SECTION) {
			rec = READ_ONCE(sec->records[idx]);
			heat = pghot_rec_heat_grace(rec, c->epoch);
			c->looks++;
			if (heat >= c->threshold)
				c->rank.pages[heat] +=
					pghot_folio_pages(sec->start_pfn + idx);
		}
		cond_resched();
	}
}

/* Decide how far the budget goes. @rate: 0 if nothing is to be promoted. */
static void pghot_plan(struct pghot_cycle *c, u64 rate)
{
	struct pghot_node *node = c->node;
	unsigned long budget, nr = 0;
	struct pghot_section *sec;

	pghot_rank_all(&c->rank);

	/* Candidates are visited all the same, so that they cool. */
	c->hold = PGHOT_NR_SKIP;
	if (!rate)
		c->hold = PGHOT_RATELIMIT;
	else if (nodes_empty(c->dram))
		c->hold = PGHOT_NOSPACE;
	if (c->hold != PGHOT_NR_SKIP)
		return;

	if (node->bucket.tokens <= 0) {
		c->stop = true;
		c->limited = true;
		return;
	}

	budget = DIV_ROUND_UP_ULL(node->bucket.tokens, PAGE_SIZE);
	list_for_each_entry(sec, &node->work, link) {
		nr += bitmap_weight(sec->ready, PAGES_PER_SECTION);
		if (nr * node->avg_pages > budget) {
			c->limited = true;
			pghot_rank_candidates(c);
			pghot_rank_discount(&c->rank, &node->stuck);
			pghot_rank_cut(&c->rank, budget);
			return;
		}
	}
}

/* Bytes per second that may be promoted now. @idle: see pghot_promote_cycle(). */
static u64 pghot_rate(struct pghot_node *node, unsigned long now, unsigned long idle)
{
	u64 limit = (u64)READ_ONCE(pghot_knobs.promote_rate_limit_mbps) * SZ_1M;
	unsigned long window = msecs_to_jiffies(READ_ONCE(pghot_knobs.promote_window_ms));

	pghot_feedback_idle(&node->feedback, idle, window);
	return pghot_feedback_rate(&node->feedback, now, window, limit, node->promoted,
				   atomic_long_read(&node->demoted_hot));
}

/* Returns the rate at which may be promoted. */
static u64 pghot_begin(struct pghot_cycle *c, unsigned long idle)
{
	unsigned int sleep_ms = READ_ONCE(pghot_knobs.kmigrated_sleep_ms);
	int pinned = READ_ONCE(pghot_knobs.target_nid);
	unsigned long now = jiffies;
	u64 rate;

	c->epoch = pghot_epoch(now);
	c->threshold = READ_ONCE(pghot_knobs.freq_threshold);
	pghot_dram_nodes(&c->dram);
	if (pinned != NUMA_NO_NODE) {
		bool there = node_isset(pinned, c->dram);

		nodes_clear(c->dram);
		if (there)
			node_set(pinned, c->dram);
	}
	nodes_clear(c->full);
	nodes_clear(c->woken);
	memset(&c->stuck, 0, sizeof(c->stuck));
	c->looks = 0;
	c->stop = false;
	c->limited = false;
	c->nr_off_lru = 0;
	c->taken_folios = 0;
	c->taken_pages = 0;
	c->promoted = 0;

	rate = pghot_rate(c->node, now, idle);
	sleep_ms = max(sleep_ms, jiffies_to_msecs(c->node->pause));
	pghot_bucket_refill(&c->node->bucket, now, rate,
			    div_u64(rate * 2 * sleep_ms, MSEC_PER_SEC));
	return rate;
}

/*
 * Candidates that a CPU holds back in its LRU batch would be found off the LRU
 * again and again.
 */
static void pghot_drain_lru(struct pghot_cycle *c)
{
	struct pghot_node *node = c->node;

	if (!c->nr_off_lru || kthread_should_stop() ||
	    time_before(jiffies, node->last_drain + PGHOT_DRAIN_INTERVAL))
		return;
	lru_add_drain_all();
	node->last_drain = jiffies;
}

/*
 * One cycle, after @idle jiffies without any candidate. Returns true if there are
 * candidates left.
 */
bool pghot_promote_cycle(struct pghot_node *node, unsigned long idle)
{
	struct pghot_cycle *c = node->cycle;
	struct pghot_section *sec, *next;
	LIST_HEAD(todo);
	bool left;
	u64 rate;
	int nid;

	mutex_lock(&node->lock);

	rate = pghot_begin(c, idle);
	pghot_collect_ready(node);
	pghot_plan(c, rate);

	/* What is put back to the list meanwhile is for the next cycle. */
	list_splice_init(&node->work, &todo);
	list_for_each_entry_safe(sec, next, &todo, link) {
		if (c->stop)
			break;
		list_del_init(&sec->link);
		pghot_scan_section(c, sec);
		if (list_empty(&sec->link) &&
		    !bitmap_empty(sec->ready, PAGES_PER_SECTION))
			list_add_tail(&sec->link, &node->work);
	}
	list_splice(&todo, &node->work);

	for_each_node_mask(nid, c->dram)
		pghot_flush(c, nid);

	pghot_count(node->visited, c->looks);
	count_vm_events(PGHOT_VISITED, c->looks);
	if (c->looks && c->hold == PGHOT_NR_SKIP)
		pghot_stuck_update(&node->stuck, &c->stuck, c->rank.cutoff,
				   !c->stop && c->rank.quota);
	/* So that the same ones are not the first each time. */
	if (c->limited && !c->stop)
		list_rotate_left(&node->work);
	if (c->taken_folios)
		node->avg_pages = DIV_ROUND_UP(c->taken_pages, c->taken_folios);
	if (c->promoted || (c->limited && rate))
		node->idle_cycles = 0;
	else
		node->idle_cycles++;
	left = !list_empty(&node->work);

	mutex_unlock(&node->lock);

	pghot_drain_lru(c);
	return left;
}
