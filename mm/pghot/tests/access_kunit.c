// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of reports: what they do to records and candidates, and what kmigrated
 * makes of a page that cannot be moved. They need a lower-tier node.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/memory-tiers.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>
#include <linux/vmstat.h>

#include <trace/events/pghot.h>

#include "fixture.h"

static bool report(struct pghot_fixture *fix, unsigned long pfn)
{
	return pghot_record_access(pfn, fix->dram_nid, PGHOT_SRC_HINTFAULTS, fix->now);
}

static void access_adds_heat(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 0, 0));
	unsigned int i;

	for (i = 1; i <= 40; i++) {
		KUNIT_ASSERT_TRUE(test, report(fix, pfn));
		KUNIT_ASSERT_EQ(test, READ_ONCE(*pghot_record_of(pfn)),
				pghot_rec(min(i, 15), fix->epoch, fix->dram_index));
	}
}

/* The window is 600 s here: time is what the report says it is. */
static void access_ages(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 0, 0));
	unsigned int i;

	for (i = 0; i < 12; i++)
		KUNIT_ASSERT_TRUE(test, report(fix, pfn));
	/* A late report from before the window was set. */
	pghot_record_access(pfn, fix->dram_nid, PGHOT_SRC_HINTFAULTS, fix->now - 1000 * HZ);
	KUNIT_EXPECT_EQ(test, *pghot_record_of(pfn),
			pghot_rec(13, fix->epoch, fix->dram_index));
	pghot_record_access(pfn, fix->dram_nid, PGHOT_SRC_HINTFAULTS, fix->now + 700 * HZ);
	KUNIT_EXPECT_EQ(test, *pghot_record_of(pfn),
			pghot_rec(13 / 2 + 1, fix->epoch + 1, fix->dram_index));
	pghot_record_access(pfn, fix->dram_nid, PGHOT_SRC_HINTFAULTS, fix->now + 6100 * HZ);
	KUNIT_EXPECT_EQ(test, *pghot_record_of(pfn),
			pghot_rec(1, fix->epoch + 10, fix->dram_index));
}

static void access_from_any_node(struct kunit *test)
{
	static const int no_nodes[] = { NUMA_NO_NODE, -2, INT_MIN, MAX_NUMNODES,
					MAX_NUMNODES + 1, INT_MAX };
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 0, 0));
	unsigned int i;
	nodemask_t dram;
	int nid;

	for (i = 0; i < ARRAY_SIZE(no_nodes); i++) {
		KUNIT_EXPECT_TRUE(test, pghot_record_access(pfn, no_nodes[i],
							    PGHOT_SRC_HINTFAULTS, fix->now));
		KUNIT_EXPECT_EQ_MSG(test, pghot_rec_node(*pghot_record_of(pfn)),
				    PGHOT_NODE_NONE, "node %d", no_nodes[i]);
	}
	pghot_dram_nodes(&dram);
	for_each_online_node(nid) {
		pghot_record_access(pfn, nid, PGHOT_SRC_HINTFAULTS, fix->now);
		KUNIT_EXPECT_EQ_MSG(test,
				    pghot_index_to_node(pghot_rec_node(*pghot_record_of(pfn))),
				    pghot_nearest(nid, &dram, pghot_distance), "node %d", nid);
	}
}

/* No record, no effect, no crash: whatever number a source comes up with. */
static void access_elsewhere(struct kunit *test)
{
	const unsigned long top = 1UL << (MAX_PHYSMEM_BITS - PAGE_SHIFT);
	const unsigned long pfns[] = { 0, 1, top - 1, top, top + 1, LONG_MAX, LONG_MIN,
				       -2UL, -1UL };
	struct pghot_fixture *fix = test->priv;
	unsigned long nr, pfn;
	unsigned int i, holes = 0;
	struct page *page;

	for (i = 0; i < ARRAY_SIZE(pfns); i++) {
		KUNIT_EXPECT_FALSE_MSG(test, report(fix, pfns[i]), "pfn %#lx", pfns[i]);
		KUNIT_EXPECT_EQ_MSG(test,
				    pghot_record_range(pfns[i], 2, fix->dram_nid,
						       PGHOT_SRC_HINTFAULTS, 1, fix->now),
				    0, "pfn %#lx", pfns[i]);
	}

	/* Sections without memory. */
	for (nr = 0; nr < NR_MEM_SECTIONS && holes < 1000; nr++) {
		pfn = section_nr_to_pfn(nr);
		if (pfn_valid(pfn))
			continue;
		holes++;
		KUNIT_ASSERT_FALSE_MSG(test, report(fix, pfn), "pfn %#lx", pfn);
		KUNIT_ASSERT_FALSE(test, report(fix, pfn + PAGES_PER_SECTION - 1));
	}
	KUNIT_EXPECT_GT(test, holes, 0);

	page = alloc_pages_node(fix->dram_nid, GFP_KERNEL | __GFP_THISNODE, 0);
	KUNIT_ASSERT_NOT_NULL(test, page);
	pfn = page_to_pfn(page);
	/* A section that is both has records for both. */
	if (!pghot_record_of(pfn))
		KUNIT_EXPECT_FALSE(test, report(fix, pfn));
	__free_page(page);
}

/* A folio has one record, that of its head. */
static void access_to_tail(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 3, __GFP_COMP));
	unsigned int i;

	for (i = 0; i < 8; i++) {
		KUNIT_ASSERT_TRUE(test, report(fix, pfn + i));
		KUNIT_ASSERT_EQ(test, pghot_rec_heat(*pghot_record_of(pfn)), i + 1);
	}
	for (i = 1; i < 8; i++)
		KUNIT_EXPECT_EQ_MSG(test, *pghot_record_of(pfn + i), 0, "page %u", i);
}

static void access_crosses_threshold(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 0, 0));
	unsigned int threshold, i;

	for (threshold = 1; threshold <= 15; threshold++) {
		KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_FREQ_THRESHOLD, threshold), 0);
		pghot_reset_record(pfn);
		for (i = 1; i <= 15; i++) {
			report(fix, pfn);
			KUNIT_ASSERT_EQ_MSG(test, pghot_is_candidate(pfn), i >= threshold,
					    "threshold %u, access %u", threshold, i);
		}
	}
}

/* Each report is counted for the source that made it. */
static void access_is_counted(struct kunit *test)
{
	static unsigned long before[NR_VM_EVENT_ITEMS], after[NR_VM_EVENT_ITEMS];
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 0, 0));
	unsigned int id, i;

	if (!IS_ENABLED(CONFIG_VM_EVENT_COUNTERS))
		kunit_skip(test, "needs CONFIG_VM_EVENT_COUNTERS");

	for (id = 0; id < PGHOT_NR_SOURCES; id++) {
		all_vm_events(before);
		for (i = 0; i < 10; i++) {
			pghot_record_access(pfn, fix->dram_nid, id, fix->now);
			/* Reported, but not recorded. */
			pghot_record_access(-1UL, fix->dram_nid, id, fix->now);
		}
		/* One report, of several accesses. */
		pghot_record_range(pfn, 1, fix->dram_nid, id, 5, fix->now);
		all_vm_events(after);
		KUNIT_EXPECT_GE(test, after[PGHOT_REPORTED_HINTFAULTS + id] -
				      before[PGHOT_REPORTED_HINTFAULTS + id], 21);
		KUNIT_EXPECT_GE(test, after[PGHOT_RECORDED_ACCESSES] -
				      before[PGHOT_RECORDED_ACCESSES], 11);
		/* Nobody reports as these here. */
		for (i = PGHOT_SRC_HWHINTS; i < PGHOT_NR_SOURCES; i++)
			if (i != id && !pghot_source(i))
				KUNIT_EXPECT_EQ(test, after[PGHOT_REPORTED_HINTFAULTS + i],
						before[PGHOT_REPORTED_HINTFAULTS + i]);
	}
}

/* ===== Ranges ===== */

static unsigned long report_range(struct pghot_fixture *fix, unsigned long pfn,
				  unsigned long nr_pages, unsigned int count)
{
	return pghot_record_range(pfn, nr_pages, fix->dram_nid, PGHOT_SRC_HINTFAULTS,
				  count, fix->now);
}

static void range_of_pages(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 4, 0));
	unsigned int i;

	KUNIT_EXPECT_EQ(test, report_range(fix, pfn + 2, 9, 3), 9);
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_EQ_MSG(test, pghot_rec_heat(*pghot_record_of(pfn + i)),
				    i >= 2 && i < 11 ? 3 : 0, "page %u", i);
	KUNIT_EXPECT_EQ(test, report_range(fix, pfn, 16, UINT_MAX), 16);
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_EQ(test, pghot_rec_heat(*pghot_record_of(pfn + i)), 15);
}

static void range_counts_folios_once(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 4, __GFP_COMP));
	unsigned int i;

	KUNIT_EXPECT_EQ(test, report_range(fix, pfn, 16, 2), 1);
	KUNIT_EXPECT_EQ(test, pghot_rec_heat(*pghot_record_of(pfn)), 2);
	/* A part of it, without its head. */
	KUNIT_EXPECT_EQ(test, report_range(fix, pfn + 5, 7, 3), 1);
	KUNIT_EXPECT_EQ(test, pghot_rec_heat(*pghot_record_of(pfn)), 5);
	for (i = 1; i < 16; i++)
		KUNIT_EXPECT_EQ(test, *pghot_record_of(pfn + i), 0);
}

static void range_of_nothing(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 0, 0));

	KUNIT_EXPECT_EQ(test, report_range(fix, pfn, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, report_range(fix, pfn, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, *pghot_record_of(pfn), 0);
}

/* However long the range is said to be, it ends after a section's pages. */
static void range_is_bounded(struct kunit *test)
{
	static const unsigned long lengths[] = { PAGES_PER_SECTION + 1, 1UL << 40,
						 LONG_MAX, ULONG_MAX - 1, ULONG_MAX };
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 0, 0));
	unsigned long nr, end = pfn + PAGES_PER_SECTION;
	unsigned int i;
	u16 *next;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		pghot_reset_record(pfn);
		nr = report_range(fix, pfn, lengths[i], 1);
		KUNIT_EXPECT_GE(test, nr, 1);
		KUNIT_EXPECT_LE(test, nr, PAGES_PER_SECTION);
		KUNIT_EXPECT_EQ(test, pghot_rec_heat(*pghot_record_of(pfn)), 1);
	}
	/* The page behind the end has seen nothing of it. */
	next = pghot_record_of(end);
	if (next && pfn_valid(end) && !PageTail(pfn_to_page(end))) {
		pghot_reset_record(end);
		report_range(fix, pfn, ULONG_MAX, 1);
		KUNIT_EXPECT_EQ(test, READ_ONCE(*next), 0);
	}
}

/* ===== Sources on and off ===== */

static void records_come_and_go(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 0, 0));
	const unsigned long pages = PAGES_PER_SECTION;
	unsigned long nr, count, bytes;
	struct pghot_section *sec;
	struct pghot_table *table;
	struct page *page;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		/* The table; and two bytes and a bit a page, and a header. */
		table = rcu_dereference_protected(pghot_sections, true);
		bytes = sizeof(*table);
		count = 0;
		for (nr = 0; nr < table->nr; nr++) {
			bytes += sizeof(table->sections[nr]);
			sec = rcu_dereference_protected(table->sections[nr], true);
			if (!sec)
				continue;
			count++;
			bytes += 2 * pages + pages / 8 + sizeof(*sec);
			page = is_vmalloc_addr(sec->records) ? vmalloc_to_page(sec->records) :
							       virt_to_page(sec->records);
			KUNIT_EXPECT_TRUE(test, node_is_toptier(page_to_nid(page)));
		}
		KUNIT_EXPECT_GT(test, count, 0);
		KUNIT_EXPECT_EQ(test, pghot_bytes_in_use(), bytes);
		KUNIT_EXPECT_TRUE(test, pghot_enabled());
		KUNIT_EXPECT_NOT_NULL(test, fix->node->task);
		KUNIT_EXPECT_TRUE(test, report(fix, pfn));

		KUNIT_ASSERT_EQ(test, pghot_set_sources(0), 0);
		KUNIT_EXPECT_FALSE(test, pghot_enabled());
		KUNIT_EXPECT_EQ(test, pghot_bytes_in_use(), 0);
		KUNIT_EXPECT_EQ(test, rcu_dereference_protected(pghot_sections, true)->nr, 0);
		KUNIT_EXPECT_NULL(test, fix->node->task);
		KUNIT_EXPECT_FALSE(test, report(fix, pfn));
		/* A source that is about to learn of it. */
		KUNIT_EXPECT_FALSE(test, __pghot_record_access(pfn, fix->dram_nid,
							       PGHOT_SRC_HINTFAULTS, fix->now));
		KUNIT_EXPECT_EQ(test, report_range(fix, pfn, 1, 1), 0);

		KUNIT_ASSERT_EQ(test, pghot_enable_source(PGHOT_SRC_HINTFAULTS, true), 0);
		KUNIT_EXPECT_EQ(test, pghot_bytes_in_use(), bytes);
		/* New records know nothing. */
		KUNIT_EXPECT_EQ(test, *pghot_record_of(pfn), 0);
	}
}

/* ===== kmigrated ===== */

static void free_object(void *object)
{
	kfree(object);
}

static void let_kmigrated_act(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_PROMOTE_RATE_LIMIT_MBPS, 1024), 0);
	KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_FREQ_THRESHOLD, 1), 0);
}

/* What has a type can never be moved: it is marked, and then left alone. */
static void unmovable_is_denied(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn, skipped, visited;
	unsigned int i;
	void *object;

	object = kmalloc_node(PAGE_SIZE, GFP_KERNEL | __GFP_THISNODE | __GFP_NOWARN, fix->nid);
	if (!object)
		kunit_skip(test, "node %d has no memory for the kernel", fix->nid);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_object, object), 0);
	memset(object, 0x6b, PAGE_SIZE);
	pfn = page_to_pfn(virt_to_head_page(object));
	KUNIT_ASSERT_NOT_NULL(test, pghot_record_of(pfn));
	pghot_reset_record(pfn);

	let_kmigrated_act(test);
	skipped = READ_ONCE(fix->node->skipped[PGHOT_UNMOVABLE]);
	KUNIT_ASSERT_TRUE(test, report(fix, pfn));
	KUNIT_ASSERT_TRUE(test, pghot_wait_dropped(pfn));
	KUNIT_EXPECT_EQ(test, *pghot_record_of(pfn), pghot_rec_denied(fix->epoch));
	KUNIT_EXPECT_GT(test, READ_ONCE(fix->node->skipped[PGHOT_UNMOVABLE]), skipped);

	for (i = 0; i < 100; i++)
		KUNIT_EXPECT_FALSE(test, report(fix, pfn));
	KUNIT_EXPECT_EQ(test, *pghot_record_of(pfn), pghot_rec_denied(fix->epoch));
	KUNIT_EXPECT_FALSE(test, pghot_is_candidate(pfn));

	/* Two epochs on it is looked at again. */
	visited = READ_ONCE(fix->node->visited);
	KUNIT_EXPECT_TRUE(test, pghot_record_access(pfn, fix->dram_nid, PGHOT_SRC_HINTFAULTS,
						    fix->now + 1300 * HZ));
	KUNIT_ASSERT_TRUE(test, pghot_wait_dropped(pfn));
	KUNIT_EXPECT_GT(test, READ_ONCE(fix->node->visited), visited);
	KUNIT_EXPECT_EQ(test, pghot_rec_node(*pghot_record_of(pfn)), PGHOT_NODE_DENIED);

	/* It is still where it was, with what was in it. */
	KUNIT_EXPECT_EQ(test, page_to_nid(virt_to_page(object)), fix->nid);
	KUNIT_EXPECT_NULL(test, memchr_inv(object, 0x6b, PAGE_SIZE));
}

/* A page that is no program's and no file's: its heat is forgotten. */
static void kernel_page_is_dropped(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	struct page *page = pghot_slow_pages(test, 0, 0);
	unsigned long pfn = page_to_pfn(page), gone;

	memset(page_address(page), 0x6b, PAGE_SIZE);
	let_kmigrated_act(test);
	gone = READ_ONCE(fix->node->skipped[PGHOT_GONE]);
	KUNIT_ASSERT_TRUE(test, report(fix, pfn));
	KUNIT_ASSERT_TRUE(test, pghot_wait_dropped(pfn));
	KUNIT_EXPECT_GT(test, READ_ONCE(fix->node->skipped[PGHOT_GONE]), gone);
	KUNIT_EXPECT_EQ(test, *pghot_record_of(pfn), 0);

	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	KUNIT_EXPECT_NULL(test, memchr_inv(page_address(page), 0x6b, PAGE_SIZE));
}

/* With a rate of 0 it is visited, waits, and keeps its heat. */
static void no_budget_keeps_candidate(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 0, 0)), limited;
	unsigned int i;
	u16 rec;

	KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_FREQ_THRESHOLD, 1), 0);
	limited = READ_ONCE(fix->node->skipped[PGHOT_RATELIMIT]);
	KUNIT_ASSERT_TRUE(test, report(fix, pfn));
	rec = READ_ONCE(*pghot_record_of(pfn));
	for (i = 0; i < 3000; i++) {
		if (READ_ONCE(fix->node->skipped[PGHOT_RATELIMIT]) > limited)
			break;
		msleep(20);
	}
	KUNIT_EXPECT_GT(test, READ_ONCE(fix->node->skipped[PGHOT_RATELIMIT]), limited);
	KUNIT_EXPECT_TRUE(test, pghot_is_candidate(pfn));
	KUNIT_EXPECT_EQ(test, READ_ONCE(*pghot_record_of(pfn)), rec);
}

/* Two sections with candidates that wait, and what the probe did to them. */
struct requeue {
	struct pghot_fixture	*fix;
	unsigned long		pfn[2];
	struct pghot_section	*sec[2];
	int			second;		/* the one that is visited second */
	unsigned int		stage;
	unsigned int		queued;		/* how often it is on the list */
};

/* Called by kmigrated whenever it leaves a candidate where it is. */
static void requeue_probe(void *data, int nid, unsigned long pfn, unsigned int why)
{
	struct requeue *r = data;
	struct pghot_section *sec;
	struct llist_node *pos;
	unsigned int steps = 0;
	bool one = pfn - r->sec[1]->start_pfn < PAGES_PER_SECTION;
	int i = one ? 1 : 0;

	/* Not another section, in whose place these would be. */
	if (nid != r->fix->nid ||
	    (!one && pfn - r->sec[0]->start_pfn >= PAGES_PER_SECTION))
		return;
	switch (READ_ONCE(r->stage)) {
	case 0:
		/* Queue the one that has its turn later in this cycle. */
		r->second = !i;
		report(r->fix, r->pfn[r->second] + 1);
		WRITE_ONCE(r->stage, 1);
		break;
	case 1:
		if (i != r->second)
			break;
		report(r->fix, r->pfn[r->second] + 2);
		/* If it is there twice, the list has no end. */
		for (pos = READ_ONCE(r->fix->node->ready.first); pos && steps < 1000;
		     pos = READ_ONCE(pos->next), steps++) {
			sec = llist_entry(pos, struct pghot_section, queue);
			r->queued += sec == r->sec[r->second];
		}
		WRITE_ONCE(r->stage, 2);
		break;
	}
}

/*
 * A section that kmigrated has left over is queued while kmigrated is busy with
 * another one, and once more while it is looked at. It must not be on the list twice.
 */
static void left_over_and_queued(struct kunit *test)
{
	struct requeue *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct pghot_fixture *fix = test->priv;
	unsigned long visited;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->fix = fix;
	for (i = 0; i < 256 && (i < 2 || r->sec[0] == r->sec[1]); i++) {
		r->pfn[!!i] = page_to_pfn(pghot_slow_pages(test, 9, 0));
		rcu_read_lock();
		r->sec[!!i] = pghot_section_of(r->pfn[!!i]);
		rcu_read_unlock();
		KUNIT_ASSERT_NOT_NULL(test, r->sec[!!i]);
	}
	if (r->sec[0] == r->sec[1])
		kunit_skip(test, "no two sections with free memory");

	KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_FREQ_THRESHOLD, 1), 0);
	KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_KMIGRATED_SLEEP_MS, 10), 0);
	/* The rate is 0: they are left over. */
	visited = READ_ONCE(fix->node->visited);
	KUNIT_ASSERT_TRUE(test, report(fix, r->pfn[0]));
	KUNIT_ASSERT_TRUE(test, report(fix, r->pfn[1]));
	for (i = 0; i < 3000 && READ_ONCE(fix->node->visited) < visited + 8; i++)
		msleep(20);

	if (register_trace_pghot_skip(requeue_probe, r))
		kunit_skip(test, "needs CONFIG_TRACEPOINTS");
	for (i = 0; i < 3000 && READ_ONCE(r->stage) < 2; i++)
		msleep(20);
	unregister_trace_pghot_skip(requeue_probe, r);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_EQ(test, r->stage, 2);
	KUNIT_EXPECT_EQ(test, r->queued, 1);
}

/* The first access after a demotion is counted, with all pages of the folio. */
static void demoted_and_accessed(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	static const unsigned int orders[] = { 0, 3 };
	unsigned long pfn, before;
	struct folio *folio;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		folio = page_folio(pghot_slow_pages(test, orders[i], orders[i] ? __GFP_COMP : 0));
		pfn = folio_pfn(folio);
		before = atomic_long_read(&fix->node->demoted_hot);

		/* What was hot here is not that folio. */
		KUNIT_ASSERT_TRUE(test, report(fix, pfn));
		pghot_demoted(folio, fix->dram_nid);
		KUNIT_EXPECT_EQ(test, pghot_rec_heat(*pghot_record_of(pfn)), 0);
		KUNIT_ASSERT_TRUE(test, report(fix, pfn + folio_nr_pages(folio) - 1));
		KUNIT_ASSERT_TRUE(test, report(fix, pfn));
		KUNIT_EXPECT_EQ(test, pghot_rec_heat(*pghot_record_of(pfn)), 2);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&fix->node->demoted_hot) - before,
				1 << orders[i]);

		/* From a node of the lower tier: DRAM has nothing to do with it. */
		pghot_reset_record(pfn);
		before = atomic_long_read(&fix->node->demoted_hot);
		pghot_demoted(folio, fix->nid);
		KUNIT_ASSERT_TRUE(test, report(fix, pfn));
		KUNIT_EXPECT_EQ(test, atomic_long_read(&fix->node->demoted_hot), before);

		/* Long after, it says nothing. */
		before = atomic_long_read(&fix->node->demoted_hot);
		pghot_demoted(folio, fix->dram_nid);
		pghot_record_access(pfn, fix->dram_nid, PGHOT_SRC_HINTFAULTS,
				    fix->now + 3700 * HZ);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&fix->node->demoted_hot), before);
		pghot_reset_record(pfn);
	}
}

static struct kunit_case access_cases[] = {
	KUNIT_CASE(access_adds_heat),
	KUNIT_CASE(access_ages),
	KUNIT_CASE(access_from_any_node),
	KUNIT_CASE(access_elsewhere),
	KUNIT_CASE(access_to_tail),
	KUNIT_CASE(access_crosses_threshold),
	KUNIT_CASE(access_is_counted),
	KUNIT_CASE(demoted_and_accessed),
	KUNIT_CASE(left_over_and_queued),
	KUNIT_CASE(range_of_pages),
	KUNIT_CASE(range_counts_folios_once),
	KUNIT_CASE(range_of_nothing),
	KUNIT_CASE(range_is_bounded),
	KUNIT_CASE(records_come_and_go),
	KUNIT_CASE(unmovable_is_denied),
	KUNIT_CASE(kernel_page_is_dropped),
	KUNIT_CASE(no_budget_keeps_candidate),
	{}
};

static struct kunit_suite access_suite = {
	.name		= "pghot_access",
	.init		= pghot_fixture_init,
	.exit		= pghot_fixture_exit,
	.test_cases	= access_cases,
};

kunit_test_suite(access_suite);
