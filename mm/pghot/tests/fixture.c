// SPDX-License-Identifier: GPL-2.0
/*
 * What tests of the record path share.
 *
 * The window is made so long that no epoch ends in a test, and the rate is 0:
 * kmigrated visits candidates, but leaves them and their records alone. A test
 * that wants kmigrated to act sets the rate.
 */
#include <kunit/test.h>
#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/memory-tiers.h>
#include <linux/mm.h>

#include "fixture.h"

static int slow_node(void)
{
	int nid;

	for_each_node_state(nid, N_MEMORY)
		if (!node_is_toptier(nid))
			return nid;
	return NUMA_NO_NODE;
}

int pghot_fixture_init(struct kunit *test)
{
	struct pghot_fixture *fix;
	nodemask_t dram;
	unsigned int i;

	if (slow_node() == NUMA_NO_NODE)
		kunit_skip(test, "needs a lower-tier node with memory");
	if (!pghot_source(PGHOT_SRC_HINTFAULTS))
		kunit_skip(test, "needs a source: CONFIG_PGHOT_HINTFAULTS");

	fix = kunit_kzalloc(test, sizeof(*fix), GFP_KERNEL);
	if (!fix)
		return -ENOMEM;

	fix->nid = slow_node();
	mutex_lock(&pghot_lock);
	fix->node = pghot_get_node(fix->nid);
	mutex_unlock(&pghot_lock);
	pghot_dram_nodes(&dram);
	if (!fix->node || nodes_empty(dram)) {
		kunit_err(test, "pghot does not know node %d or no DRAM\n", fix->nid);
		return -ENODEV;
	}
	fix->dram_nid = first_node(dram);
	fix->dram_index = pghot_node_index[fix->dram_nid];

	fix->sources = pghot_enabled_sources();
	for (i = 0; i < PGHOT_NR_KNOBS; i++)
		fix->knobs[i] = pghot_knob_get(i);
	/* From here on there is something to be put back. */
	test->priv = fix;

	if (pghot_knob_set(PGHOT_PROMOTE_WINDOW_MS, 600000) ||
	    pghot_knob_set(PGHOT_FREQ_THRESHOLD, PGHOT_HEAT_MAX) ||
	    pghot_knob_set(PGHOT_PROMOTE_RATE_LIMIT_MBPS, 0))
		return -EINVAL;
	fix->now = jiffies;
	fix->epoch = pghot_epoch(fix->now);
	return pghot_enable_source(PGHOT_SRC_HINTFAULTS, true);
}

void pghot_fixture_exit(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned int i;

	if (!fix)
		return;
	for (i = 0; i < PGHOT_NR_KNOBS; i++)
		pghot_knob_set(i, fix->knobs[i]);
	KUNIT_EXPECT_EQ(test, pghot_set_sources(fix->sources), 0);
}

struct allocation {
	struct page	*page;
	unsigned int	order;
};

static void free_allocation(void *arg)
{
	struct allocation *a = arg;

	__free_pages(a->page, a->order);
}

/* Kernel pages on the slow node, without a past; freed when the test ends. */
struct page *pghot_slow_pages(struct kunit *test, unsigned int order, gfp_t gfp)
{
	struct pghot_fixture *fix = test->priv;
	struct allocation *a;
	unsigned long i;

	a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, a);
	a->order = order;
	a->page = alloc_pages_node(fix->nid, GFP_KERNEL | __GFP_THISNODE | __GFP_ZERO |
				   __GFP_NOWARN | gfp, order);
	if (!a->page)
		kunit_skip(test, "node %d has no memory for the kernel", fix->nid);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_allocation, a), 0);
	KUNIT_ASSERT_EQ(test, page_to_nid(a->page), fix->nid);

	for (i = 0; i < 1UL << order; i++) {
		KUNIT_ASSERT_NOT_NULL(test, pghot_record_of(page_to_pfn(a->page) + i));
		pghot_reset_record(page_to_pfn(a->page) + i);
	}
	return a->page;
}

/* What is found stays while the source is enabled. */
static struct pghot_section *section_of(unsigned long pfn)
{
	guard(rcu)();
	return pghot_section_of(pfn);
}

/* The record of a page, or NULL. */
u16 *pghot_record_of(unsigned long pfn)
{
	struct pghot_section *sec = section_of(pfn);

	return sec ? &sec->records[pfn - sec->start_pfn] : NULL;
}

bool pghot_is_candidate(unsigned long pfn)
{
	struct pghot_section *sec = section_of(pfn);

	return sec && test_bit(pfn - sec->start_pfn, sec->ready);
}

/*
 * As if nobody had touched it. Between two cycles of kmigrated, which would take
 * a record that changes under it for a new access.
 */
void pghot_reset_record(unsigned long pfn)
{
	struct pghot_section *sec = section_of(pfn);

	guard(mutex)(&sec->node->lock);
	WRITE_ONCE(sec->records[pfn - sec->start_pfn], 0);
	clear_bit(pfn - sec->start_pfn, sec->ready);
}

/*
 * Wait until kmigrated has dropped a candidate and the cycle in which it did so
 * is over. It may take a minute, but must not.
 */
bool pghot_wait_dropped(unsigned long pfn)
{
	struct pghot_section *sec = section_of(pfn);
	unsigned int i;
	bool dropped;

	for (i = 0; i < 3000; i++) {
		mutex_lock(&sec->node->lock);
		dropped = !pghot_is_candidate(pfn);
		mutex_unlock(&sec->node->lock);
		if (dropped)
			return true;
		msleep(20);
	}
	return false;
}
