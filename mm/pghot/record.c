// SPDX-License-Identifier: GPL-2.0
/*
 * The way of an access: from a report to a candidate.
 *
 * Everything here may run in NMI context: no lock, no allocation, no sleep. The
 * one loop is bounded by PGHOT_MAX_TRIES.
 *
 * The record and its ageing are described in record.h.
 */
#define pr_fmt(fmt) "pghot: " fmt

#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/memory-tiers.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

#include "internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/pghot.h>

/* Is any source enabled? Patches out the report where none is. */
DEFINE_STATIC_KEY_FALSE(pghot_enabled_key);

/*
 * Updates of one record by several CPUs at once. Who loses that often gives up:
 * the others have made the page hotter in the meantime.
 */
#define PGHOT_MAX_TRIES		8

/* Before the first change of the window, about the default of the knob. */
static struct pghot_clock pghot_first_clock = {
	.len	= 3 * HZ,
};

static struct pghot_clock __rcu *pghot_clock_ptr =
	RCU_INITIALIZER(&pghot_first_clock);

static unsigned int pghot_epoch_rcu(unsigned long now)
{
	return pghot_clock_epoch(rcu_dereference(pghot_clock_ptr), now);
}

/* The epoch at @now, not reduced to the bits that a record has. Any context. */
unsigned int pghot_epoch(unsigned long now)
{
	guard(rcu)();
	return pghot_epoch_rcu(now);
}

/* Make epochs @ms long. Called by one writer at a time. */
int pghot_set_window(unsigned int ms)
{
	struct pghot_clock *clk, *old;

	if (ms == READ_ONCE(pghot_knobs.promote_window_ms))
		return 0;

	clk = kmalloc_obj(*clk);
	if (!clk)
		return -ENOMEM;

	old = rcu_dereference_protected(pghot_clock_ptr,
					lockdep_is_held(&pghot_lock));
	*clk = pghot_clock_change(old, jiffies, msecs_to_jiffies(ms));
	rcu_assign_pointer(pghot_clock_ptr, clk);

	if (old != &pghot_first_clock) {
		synchronize_rcu();
		kfree(old);
	}
	return 0;
}

/*
 * The section of @pfn, or NULL if it has no records. Called under RCU; valid as
 * long as that is held, or the lock of its node.
 */
struct pghot_section *pghot_section_of(unsigned long pfn)
{
	struct pghot_table *table = rcu_dereference(pghot_sections);
	unsigned long i = pfn_to_section_nr(pfn) - table->first;

	/* A number below the first one wraps. */
	return i < table->nr ? rcu_dereference(table->sections[i]) : NULL;
}

/*
 * Make a page a candidate and see that its section is on its node's list.
 *
 * This is one side of two handshakes with kmigrated: each side writes, passes a
 * full barrier and reads what the other one wrote, so that at least one of them
 * sees the other's word.
 */
void pghot_mark_ready(struct pghot_section *sec, unsigned long idx)
{
	struct pghot_node *node = sec->node;

	/*
	 * The record was written by a cmpxchg, which is a full barrier: pairs
	 * with the one in pghot_clear_ready(), which clears the bit and then
	 * reads the record again. A report that changed nothing says nothing
	 * that was not known when the bit was cleared.
	 */
	if (test_bit(idx, sec->ready))
		return;
	set_bit(idx, sec->ready);

	/*
	 * Pairs with the barrier in pghot_collect_ready(), which clears QUEUED
	 * before the bits are read.
	 */
	smp_mb__after_atomic();
	if (test_bit(PGHOT_SECTION_QUEUED, &sec->flags) ||
	    test_and_set_bit(PGHOT_SECTION_QUEUED, &sec->flags))
		return;

	/* Only who finds the list empty needs to wake the thread. */
	if (llist_add(&sec->queue, &node->ready))
		irq_work_queue(&node->wake);
}

/* Head of the folio that @pfn is in. Unlocked: may be out of date at once. */
static unsigned long pghot_head_pfn(unsigned long pfn)
{
	return page_to_pfn(&page_folio(pfn_to_page(pfn))->page);
}

/* The DRAM node for accesses from @nid, as records have it. */
static unsigned int pghot_accessing_node(int nid)
{
	if (nid < 0 || nid >= MAX_NUMNODES)
		return PGHOT_NODE_NONE;
	return READ_ONCE(pghot_node_index[nid]);
}

/* Documented at pghot_demoted(). */
void __pghot_demoted(struct folio *folio, int nid)
{
	unsigned long pfn = folio_pfn(folio);
	struct pghot_section *sec;

	if (!node_is_toptier(nid))
		return;

	guard(rcu)();
	sec = pghot_section_of(pfn);
	/* Whatever is known is about a page that was there before. */
	if (sec)
		WRITE_ONCE(sec->records[pfn - sec->start_pfn],
			   pghot_rec_demoted(pghot_epoch_rcu(jiffies)));
}

/* Pages of the folio whose head is @page; a guess, without a reference. */
unsigned long pghot_nr_pages(struct page *page)
{
	if (!PageHead(page))
		return 1;
	return min_t(unsigned long, compound_nr(page), MAX_ORDER_NR_PAGES);
}

/* The folio at @pfn was demoted too early: it is in use. */
static void pghot_count_demoted_hot(struct pghot_section *sec, unsigned long pfn)
{
	unsigned long nr = pghot_nr_pages(pfn_to_page(pfn));

	count_vm_events(PGHOT_DEMOTED_HOT, nr);
	atomic_long_add(nr, &sec->node->demoted_hot);
}

/* @sec is the section of a page of the folio whose head is @pfn. */
static bool pghot_touch(struct pghot_section *sec, unsigned long pfn, int nid,
			enum pghot_source_id src, unsigned int count,
			unsigned int epoch)
{
	unsigned int node = pghot_accessing_node(nid);
	unsigned long idx = pfn - sec->start_pfn;
	unsigned int tries, heat, threshold;
	u16 old, new, *rec;

	/* The folio began in an earlier section. */
	if (unlikely(idx >= PAGES_PER_SECTION)) {
		sec = pghot_section_of(pfn);
		if (!sec)
			return false;
		idx = pfn - sec->start_pfn;
	}

	rec = &sec->records[idx];
	old = READ_ONCE(*rec);
	for (tries = 0; ; tries++) {
		new = pghot_rec_touch(old, epoch, node, count);
		/* Nothing to add: leave the cache line shared. */
		if (new == old)
			break;
		if (try_cmpxchg(rec, &old, new))
			break;
		if (tries == PGHOT_MAX_TRIES)
			return false;
	}

	heat = pghot_rec_heat(new);
	/* Denied: touches do not count for a while. */
	if (!heat)
		return false;

	if (unlikely(pghot_rec_is_demoted(old, epoch)))
		pghot_count_demoted_hot(sec, pfn);

	threshold = READ_ONCE(pghot_knobs.freq_threshold);
	trace_pghot_record(pfn, nid, src, heat);
	count_vm_event(PGHOT_RECORDED_ACCESSES);

	if (heat >= threshold) {
		if (pghot_rec_heat_now(old, epoch) < threshold)
			trace_pghot_hot(pfn, nid, heat);
		pghot_mark_ready(sec, idx);
	}
	return true;
}

/* Out of line part of pghot_record_access(), documented there. */
bool __pghot_record_access(unsigned long pfn, int nid, enum pghot_source_id src,
			   unsigned long now)
{
	struct pghot_section *sec;

	count_vm_event(PGHOT_REPORTED_HINTFAULTS + src);

	guard(rcu)();
	/* A page of a section with records has a struct page, others may not. */
	sec = pghot_section_of(pfn);
	if (!sec)
		return false;

	return pghot_touch(sec, pghot_head_pfn(pfn), nid, src, 1,
			   pghot_epoch_rcu(now));
}

/* Out of line part of pghot_record_range(), documented there. */
unsigned long __pghot_record_range(unsigned long pfn, unsigned long nr_pages,
				   int nid, enum pghot_source_id src,
				   unsigned int count, unsigned long now)
{
	unsigned long end, head, done = ULONG_MAX, recorded = 0;
	struct pghot_section *sec;
	unsigned int epoch;

	if (!count)
		return 0;

	guard(rcu)();
	epoch = pghot_epoch_rcu(now);
	end = pfn + min(nr_pages, PAGES_PER_SECTION);
	for (; pfn < end; pfn++) {
		sec = pghot_section_of(pfn);
		if (!sec)
			continue;
		head = pghot_head_pfn(pfn);
		if (head == done)
			continue;
		done = head;
		count_vm_event(PGHOT_REPORTED_HINTFAULTS + src);
		recorded += pghot_touch(sec, head, nid, src, count, epoch);
	}
	return recorded;
}
