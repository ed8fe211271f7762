// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of what becomes of a sample: the filters, with all input there is; rings;
 * and that each sample is counted in one place.
 */
#include <kunit/test.h>
#include <linux/cleanup.h>
#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/pfn.h>
#include <linux/sched.h>
#include <linux/vmstat.h>

#include "../hwhint.h"
#include "fixture.h"
#include "random.h"

/* ===== Filters ===== */

#define LIMIT	0x7ffffffff000UL

/* The table in hwhint.h, in another form: the first that applies. */
static enum pghot_hint_end expected_end(const struct pghot_hint *h, bool user)
{
	bool access = h->kind == PGHOT_HINT_LOAD || h->kind == PGHOT_HINT_STORE ||
		      h->kind == PGHOT_HINT_PREFETCH;
	bool of_kernel = h->addr >= LIMIT && !h->guest;

	if (!access || !(h->phys_valid && h->addr_valid) || h->level == PGHOT_HINT_DEVICE)
		return PGHOT_HINT_INVALID;
	if (of_kernel || !user)
		return PGHOT_HINT_KERNEL;
	return h->level == PGHOT_HINT_CACHE ? PGHOT_HINT_IN_CACHE : PGHOT_HINT_ON;
}

/* All samples that differ in anything but the page. */
static void sample_filter(struct kunit *test)
{
	static const unsigned long addrs[] = {
		0, 1, LIMIT - 1, LIMIT, 1UL << 63, -1UL,
	};
	unsigned int bits, i, kind, level, seen[PGHOT_HINT_NR_ENDS + 1] = {};

	for (kind = PGHOT_HINT_NONE; kind <= PGHOT_HINT_PREFETCH; kind++) {
		for (level = PGHOT_HINT_UNKNOWN; level <= PGHOT_HINT_DEVICE; level++) {
			for (bits = 0; bits < 16; bits++) {
				for (i = 0; i < ARRAY_SIZE(addrs); i++) {
					struct pghot_hint h = {
						.addr		= addrs[i],
						.kind		= kind,
						.level		= level,
						.phys_valid	= bits & 1,
						.addr_valid	= bits & 2,
						.guest		= bits & 4,
					};
					bool user = bits & 8;
					enum pghot_hint_end end;

					end = pghot_hint_judge_sample(&h, user, LIMIT);
					KUNIT_ASSERT_EQ_MSG(test, end, expected_end(&h, user),
							    "kind %u level %u bits %x addr %lx",
							    kind, level, bits, addrs[i]);
					seen[end]++;
				}
			}
		}
	}
	KUNIT_EXPECT_GT(test, seen[PGHOT_HINT_INVALID], 0);
	KUNIT_EXPECT_GT(test, seen[PGHOT_HINT_KERNEL], 0);
	KUNIT_EXPECT_GT(test, seen[PGHOT_HINT_IN_CACHE], 0);
	KUNIT_EXPECT_GT(test, seen[PGHOT_HINT_ON], 0);
}

static void page_filter(struct kunit *test)
{
	static const u8 levels[] = {
		PGHOT_HINT_UNKNOWN, PGHOT_HINT_DRAM, PGHOT_HINT_EXTMEM,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(levels); i++) {
		struct pghot_hint h = { .kind = PGHOT_HINT_LOAD, .level = levels[i] };
		bool ext = levels[i] == PGHOT_HINT_EXTMEM;

		/* A page with a record is lower-tier memory, whatever the unit says. */
		KUNIT_EXPECT_EQ(test, pghot_hint_judge_page(&h, true, true), PGHOT_HINT_ON);
		KUNIT_EXPECT_EQ(test, pghot_hint_judge_page(&h, true, false),
				PGHOT_HINT_DENIED);
		KUNIT_EXPECT_EQ(test, pghot_hint_judge_page(&h, false, true),
				ext ? PGHOT_HINT_UNRECORDED : PGHOT_HINT_IN_DRAM);
		KUNIT_EXPECT_EQ(test, pghot_hint_judge_page(&h, false, false),
				ext ? PGHOT_HINT_UNRECORDED : PGHOT_HINT_IN_DRAM);
	}
}

/* ===== Rings ===== */

static struct pghot_hint_ring *new_ring(struct kunit *test, unsigned int start)
{
	struct pghot_hint_ring *ring = kunit_kzalloc(test, sizeof(*ring), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ring);
	ring->head = start;
	ring->tail = start;
	return ring;
}

static struct pghot_hint_entry nth_entry(unsigned long n)
{
	return (struct pghot_hint_entry) {
		.pfn	= n,
		.addr	= ~n,
		.tgid	= n & 0xffff,
	};
}

static void expect_nth(struct kunit *test, const struct pghot_hint_entry *entry,
		       unsigned long n)
{
	KUNIT_ASSERT_EQ(test, entry->pfn, n);
	KUNIT_ASSERT_EQ(test, entry->addr, ~n);
	KUNIT_ASSERT_EQ(test, entry->tgid, n & 0xffff);
}

/* A full ring takes nothing, loses nothing, and says how full it is. */
static void ring_fills_up(struct kunit *test)
{
	struct pghot_hint_ring *ring = new_ring(test, 0);
	struct pghot_hint_entry entry;
	unsigned int i;

	KUNIT_EXPECT_FALSE(test, pghot_hint_get(ring, &entry));
	for (i = 0; i < PGHOT_HINT_RING_SIZE; i++) {
		entry = nth_entry(i);
		KUNIT_ASSERT_EQ(test, pghot_hint_put(ring, &entry), i + 1);
	}
	entry = nth_entry(i);
	KUNIT_EXPECT_EQ(test, pghot_hint_put(ring, &entry), 0);
	KUNIT_EXPECT_EQ(test, pghot_hint_put(ring, &entry), 0);
	for (i = 0; i < PGHOT_HINT_RING_SIZE; i++) {
		KUNIT_ASSERT_TRUE(test, pghot_hint_get(ring, &entry));
		expect_nth(test, &entry, i);
	}
	KUNIT_EXPECT_FALSE(test, pghot_hint_get(ring, &entry));
	KUNIT_EXPECT_EQ(test, pghot_hint_put(ring, &entry), 1);
}

/* In and out at random, also where the numbers wrap, against a count. */
static void ring_in_order(struct kunit *test)
{
	unsigned int seed, i;

	for (seed = 0; seed < PGHOT_NR_SEEDS; seed++) {
		struct pghot_hint_ring *ring = new_ring(test, -1U - seed * 97);
		unsigned long in = 0, out = 0;
		struct pghot_hint_entry entry;
		struct rnd_state rnd;

		prandom_seed_state(&rnd, seed);
		for (i = 0; i < 20000; i++) {
			/* Runs of either kind, so that it gets full and empty. */
			bool put = pghot_random(&rnd, 8) < (i / 1500 % 2 ? 2 : 6);

			if (put) {
				unsigned int used = in - out;

				entry = nth_entry(in);
				used = used == PGHOT_HINT_RING_SIZE ? 0 : used + 1;
				KUNIT_ASSERT_EQ(test, pghot_hint_put(ring, &entry), used);
				in += !!used;
			} else {
				KUNIT_ASSERT_EQ(test, pghot_hint_get(ring, &entry), in != out);
				if (in != out)
					expect_nth(test, &entry, out++);
			}
		}
		KUNIT_EXPECT_GT(test, in, PGHOT_HINT_RING_SIZE);
		KUNIT_EXPECT_GT(test, out, 0);
	}
}

/* ===== Counters ===== */

static const enum vm_event_item end_events[] = {
	HWHINT_USEFUL_EVENTS, HWHINT_DROPPED_EVENTS, HWHINT_DRAM_ACCESSES,
	HWHINT_CACHE_HITS, HWHINT_INVALID_EVENTS, HWHINT_KERNEL_EVENTS,
	HWHINT_DENIED_EVENTS, HWHINT_UNRECORDED_EVENTS,
};

struct events {
	unsigned long	now[NR_VM_EVENT_ITEMS];
	unsigned long	before[NR_VM_EVENT_ITEMS];
};

static struct events *new_events(struct kunit *test)
{
	struct events *ev = kunit_kzalloc(test, sizeof(*ev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ev);
	return ev;
}

static unsigned long since(const struct events *ev, enum vm_event_item item)
{
	return ev->now[item] - ev->before[item];
}

/* Report as an interrupt does. Returns the one event that counted its end. */
static int report(struct kunit *test, struct events *ev, const struct pghot_hint *hint,
		  bool user)
{
	unsigned int i, sum = 0;
	int found = -1;

	all_vm_events(ev->before);
	scoped_guard(irqsave)
		pghot_hint_count(hint, user);
	all_vm_events(ev->now);

	KUNIT_ASSERT_EQ(test, since(ev, HWHINT_TOTAL_EVENTS), 1);
	for (i = 0; i < ARRAY_SIZE(end_events); i++) {
		if (since(ev, end_events[i]))
			found = end_events[i];
		sum += since(ev, end_events[i]);
	}
	KUNIT_ASSERT_EQ(test, sum, 1);
	return found;
}

/* While nothing samples: with a unit at work, counters would move by themselves. */
static int counters_init(struct kunit *test)
{
	int err = pghot_fixture_init(test);

	if (!err && pghot_enabled_sources() & BIT(PGHOT_SRC_HWHINTS))
		err = pghot_enable_source(PGHOT_SRC_HWHINTS, false);
	return err;
}

static struct pghot_hint access_to(struct page *page, u8 level)
{
	return (struct pghot_hint) {
		.phys		= PFN_PHYS(page_to_pfn(page)) + 8,
		.addr		= 0x10008,
		.kind		= PGHOT_HINT_LOAD,
		.level		= level,
		.phys_valid	= true,
		.addr_valid	= true,
	};
}

static struct page *dram_page(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	struct page *page = alloc_pages_node(fix->dram_nid, GFP_KERNEL | __GFP_THISNODE, 0);

	KUNIT_ASSERT_NOT_NULL(test, page);
	return page;
}

/* Each end that can be come to without a unit. */
static void one_end(struct kunit *test)
{
	struct events *ev = new_events(test);
	struct page *slow = pghot_slow_pages(test, 0, 0);
	struct page *dram = dram_page(test);
	struct pghot_hint h;

	h = access_to(slow, PGHOT_HINT_UNKNOWN);
	/* There are no rings. */
	KUNIT_EXPECT_EQ(test, report(test, ev, &h, true), HWHINT_DROPPED_EVENTS);
	KUNIT_EXPECT_EQ(test, since(ev, HWHINT_EXTMEM_ACCESSES), 1);
	KUNIT_EXPECT_EQ(test, since(ev, HWHINT_LOADS), 1);

	/* The page's address has the last word. */
	h = access_to(slow, PGHOT_HINT_DRAM);
	h.kind = PGHOT_HINT_STORE;
	KUNIT_EXPECT_EQ(test, report(test, ev, &h, true), HWHINT_DROPPED_EVENTS);
	KUNIT_EXPECT_EQ(test, since(ev, HWHINT_STORES), 1);

	h = access_to(slow, PGHOT_HINT_CACHE);
	h.kind = PGHOT_HINT_PREFETCH;
	KUNIT_EXPECT_EQ(test, report(test, ev, &h, true), HWHINT_CACHE_HITS);
	KUNIT_EXPECT_EQ(test, since(ev, HWHINT_PREFETCHES), 1);
	KUNIT_EXPECT_EQ(test, since(ev, HWHINT_EXTMEM_ACCESSES), 0);

	h = access_to(dram, PGHOT_HINT_UNKNOWN);
	KUNIT_EXPECT_EQ(test, report(test, ev, &h, true), HWHINT_DRAM_ACCESSES);
	KUNIT_EXPECT_EQ(test, since(ev, HWHINT_EXTMEM_ACCESSES), 0);

	h = access_to(dram, PGHOT_HINT_EXTMEM);
	KUNIT_EXPECT_EQ(test, report(test, ev, &h, true), HWHINT_UNRECORDED_EVENTS);

	/* An address at which there is no memory. */
	h.phys = ~0ULL;
	KUNIT_EXPECT_EQ(test, report(test, ev, &h, true), HWHINT_UNRECORDED_EVENTS);
	h.level = PGHOT_HINT_UNKNOWN;
	KUNIT_EXPECT_EQ(test, report(test, ev, &h, true), HWHINT_DRAM_ACCESSES);

	h = access_to(slow, PGHOT_HINT_UNKNOWN);
	KUNIT_EXPECT_EQ(test, report(test, ev, &h, false), HWHINT_KERNEL_EVENTS);
	h.addr = -4096UL;
	KUNIT_EXPECT_EQ(test, report(test, ev, &h, true), HWHINT_KERNEL_EVENTS);
	h.kind = PGHOT_HINT_NONE;
	KUNIT_EXPECT_EQ(test, report(test, ev, &h, true), HWHINT_INVALID_EVENTS);
	KUNIT_EXPECT_EQ(test, since(ev, HWHINT_LOADS) + since(ev, HWHINT_STORES) +
			      since(ev, HWHINT_PREFETCHES), 0);
	__free_page(dram);
}

/* Not for a task that its mempolicy keeps off DRAM. */
static void policy_denies(struct kunit *test)
{
	static struct mempolicy policy = { .mode = MPOL_BIND };
	struct mempolicy *saved = current->mempolicy;
	struct pghot_fixture *fix = test->priv;
	struct events *ev = new_events(test);
	struct pghot_hint h = access_to(pghot_slow_pages(test, 0, 0), PGHOT_HINT_UNKNOWN);
	int slow_only, both;

	policy.nodes = nodemask_of_node(fix->nid);
	current->mempolicy = &policy;
	slow_only = report(test, ev, &h, true);
	node_set(fix->dram_nid, policy.nodes);
	both = report(test, ev, &h, true);
	current->mempolicy = saved;

	KUNIT_EXPECT_EQ(test, slow_only, HWHINT_DENIED_EVENTS);
	KUNIT_EXPECT_EQ(test, both, HWHINT_DROPPED_EVENTS);
}

/* Random samples: as many ends as samples. */
static void ends_add_up(struct kunit *test)
{
	struct page *pages[2] = { pghot_slow_pages(test, 0, 0), dram_page(test) };
	struct events *ev = new_events(test);
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < 2000; i++) {
		struct pghot_hint h = access_to(pages[pghot_random(&rnd, 2)],
						pghot_random(&rnd, PGHOT_HINT_DEVICE + 1));

		h.kind = pghot_random(&rnd, PGHOT_HINT_PREFETCH + 1);
		h.addr_valid = pghot_random(&rnd, 4);
		h.phys_valid = pghot_random(&rnd, 4);
		h.guest = !pghot_random(&rnd, 4);
		if (!pghot_random(&rnd, 4))
			h.addr = pghot_random64(&rnd);
		if (!pghot_random(&rnd, 4))
			h.phys = pghot_random64(&rnd);
		/* Checks that there is one. */
		report(test, ev, &h, pghot_random(&rnd, 4));
	}
	__free_page(pages[1]);
}

static struct kunit_case hwhint_cases[] = {
	KUNIT_CASE(sample_filter),
	KUNIT_CASE(page_filter),
	KUNIT_CASE(ring_fills_up),
	KUNIT_CASE(ring_in_order),
	{}
};

static struct kunit_suite hwhint_suite = {
	.name		= "pghot_hwhint",
	.test_cases	= hwhint_cases,
};

static struct kunit_case hwcount_cases[] = {
	KUNIT_CASE(one_end),
	KUNIT_CASE(policy_denies),
	KUNIT_CASE(ends_add_up),
	{}
};

static struct kunit_suite hwcount_suite = {
	.name		= "pghot_hwcount",
	.init		= counters_init,
	.exit		= pghot_fixture_exit,
	.test_cases	= hwcount_cases,
};

kunit_test_suites(&hwhint_suite, &hwcount_suite);
