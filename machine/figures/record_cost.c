// SPDX-License-Identifier: GPL-2.0
/*
 * record_cost: how many instructions a report of an access takes.
 *
 * A module for QEMU with -icount shift=0 only, where the time stamp counter
 * counts instructions. When it is loaded, it takes pages of a lower-tier node,
 * reports accesses to them with interrupts off, and prints what a report took,
 * the call with its arguments included.
 *
 * The guest must have a source enabled, freq_threshold=15 (so that a record can
 * be touched often before the page gets hot) and a long promote window.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pghot.h>
#include <asm/msr.h>

#define NR_PAGES	64
#define THRESHOLD	15

static int nid = 2;
module_param(nid, int, 0444);
MODULE_PARM_DESC(nid, "lower-tier node");

typedef bool (*record_fn)(unsigned long pfn, int nid, enum pghot_source_id src,
			  unsigned long now);

static record_fn record;

/* What the loop and the clock take, to be subtracted: the same without a call. */
static noinline u64 time_nothing(unsigned long pfn, unsigned int times)
{
	u64 start = rdtsc();

	while (times--)
		barrier();
	return rdtsc() - start;
}

static noinline u64 time_record(unsigned long pfn, unsigned int times)
{
	u64 start = rdtsc();

	while (times--)
		record(pfn, 0, PGHOT_SRC_HWHINTS, jiffies);
	return rdtsc() - start;
}

/* Instructions of @times reports of accesses to @pfn. */
static u64 cost(unsigned long pfn, unsigned int times)
{
	unsigned long flags;
	u64 with, without;

	local_irq_save(flags);
	with = time_record(pfn, times);
	without = time_nothing(pfn, times);
	local_irq_restore(flags);
	return with > without ? with - without : 0;
}

/* record is no symbol for modules; a probe at it tells where it is. */
static int find_record(void)
{
	struct kprobe kp = { .symbol_name = "__pghot_record_access" };
	int err = register_kprobe(&kp);

	if (err)
		return err;
	record = (record_fn)kp.addr;
	unregister_kprobe(&kp);
	return 0;
}

static int __init record_cost_init(void)
{
	u64 warm = 0, hot = 0, first = 0, crossing = 0;
	struct page *page[NR_PAGES];
	unsigned long pfn, flags;
	unsigned int i, nr;
	int err;

	err = find_record();
	if (err)
		return err;

	for (nr = 0; nr < NR_PAGES; nr++) {
		page[nr] = alloc_pages_node(nid, GFP_KERNEL | __GFP_THISNODE, 0);
		if (!page[nr])
			break;
	}
	err = -ENOMEM;
	if (nr < NR_PAGES)
		goto out;

	err = -ENODEV;
	for (i = 0; i < NR_PAGES; i++) {
		pfn = page_to_pfn(page[i]);
		/* All of it, or the thread may look at the page in between. */
		local_irq_save(flags);
		if (!record(pfn, 0, PGHOT_SRC_HWHINTS, jiffies)) {
			local_irq_restore(flags);
			pr_err("node %d has no records\n", nid);
			goto out;
		}
		/* A page without heat, and one on its way to be hot. */
		warm += cost(pfn, THRESHOLD - 2);
		/* The touch that makes it hot, and what that sets going. */
		first = cost(pfn, 1);
		crossing = max(crossing, first);
		/* A candidate already, as hot as can be. */
		hot += cost(pfn, 64);
		local_irq_restore(flags);
	}
	pr_info("warm %llu\n", div_u64(warm, NR_PAGES * (THRESHOLD - 2)));
	pr_info("hot %llu\n", div_u64(hot, NR_PAGES * 64));
	pr_info("crossing %llu\n", crossing);
	err = 0;
out:
	while (nr--)
		__free_page(page[nr]);
	return err;
}

static void __exit record_cost_exit(void)
{
}

module_init(record_cost_init);
module_exit(record_cost_exit);

MODULE_DESCRIPTION("Instructions of pghot_record_access()");
MODULE_LICENSE("GPL");
