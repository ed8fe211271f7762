// SPDX-License-Identifier: GPL-2.0
/*
 * NUMA hint faults as a source.
 *
 * While it is enabled, the scan of NUMA balancing arms lower-tier memory,
 * whatever kernel.numa_balancing says, and its fault handler reports here
 * instead of migrating.
 *
 * One fault says little: any page that is used at all faults once a scan. What
 * tells hot from cold is how soon after the scan it does. Two measures of that
 * are there:
 *
 * - time: the page faulted less than latency_ms after it was scanned. In a large
 *   address space the next scan is minutes away, and few pages qualify, hot or
 *   not.
 *
 * - faults: fewer than latency_faults other hint faults came first. That ranks
 *   pages by heat without asking how long it took: of what a scan arms, the
 *   hottest fault first.
 *
 * Scan and fault find each other through the cpupid bits of the folio, which
 * lower-tier folios do not need. There may be 12 bits of them, so latencies wrap
 * (at 4 s or more, or 16 times latency_faults) and a page that faults much later
 * is mistaken for an early one now and then: once in 4 wraps at the defaults for
 * time, once in 16 for faults.
 */
#include <linux/atomic.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/kobject.h>
#include <linux/memory-tiers.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sysfs.h>
#include <linux/vmstat.h>

#include "internal.h"

/* Does the fault path report here? */
DEFINE_STATIC_KEY_FALSE(pghot_hintfaults_key);

/* Did it ever? */
DEFINE_STATIC_KEY_FALSE(pghot_hintfaults_used_key);

#define PGHOT_LATENCY_MS_MAX		3000
#define PGHOT_LATENCY_FAULTS_MAX	SZ_16M

/* How many units of the stamp latency_faults is; the stamp wraps at 4096. */
#define PGHOT_STAMP_UNITS		256

/* Faults that a CPU counts by itself before it tells the others. */
#define PGHOT_FAULT_BATCH		16

/* Knobs: which measure, and its limits. */
static bool pghot_count_faults __read_mostly;
/* As kernel.numa_balancing's hot threshold. */
static unsigned int pghot_latency_ms __read_mostly = 1000;
/* An eighth of the pages that one scan arms by default. */
static unsigned int pghot_latency_faults __read_mostly = 8192;

/* Hint faults on lower-tier memory, and what is not yet in that sum. */
static atomic_long_t pghot_nr_faults ____cacheline_aligned_in_smp;
static DEFINE_PER_CPU(unsigned int, pghot_faults_pending);

/* Binary logarithm of the faults in a unit of the stamp: so it wraps cleanly. */
static unsigned int pghot_unit_shift(unsigned int limit)
{
	return order_base_2(DIV_ROUND_UP(limit, PGHOT_STAMP_UNITS));
}

/**
 * pghot_hintfault_stamp - what to remember of a folio when it is scanned
 *
 * Context: any; called with a page table lock held.
 * Return: the time in ms, or the number of hint faults in units.
 */
unsigned int pghot_hintfault_stamp(void)
{
	if (!READ_ONCE(pghot_count_faults))
		return jiffies_to_msecs(jiffies);

	return atomic_long_read(&pghot_nr_faults) >>
	       pghot_unit_shift(READ_ONCE(pghot_latency_faults));
}

/* Is @latency, in what the stamp counts, that of a hot page? */
static bool pghot_latency_is_hot(unsigned int latency)
{
	unsigned int limit;

	if (!READ_ONCE(pghot_count_faults))
		return latency < READ_ONCE(pghot_latency_ms);

	limit = READ_ONCE(pghot_latency_faults);
	return (u64)latency << pghot_unit_shift(limit) < limit;
}

static void pghot_count_fault(void)
{
	/* Preemption is off: the page table lock is held. */
	if (__this_cpu_inc_return(pghot_faults_pending) < PGHOT_FAULT_BATCH)
		return;
	__this_cpu_write(pghot_faults_pending, 0);
	atomic_long_add(PGHOT_FAULT_BATCH, &pghot_nr_faults);
}

/**
 * pghot_hintfault - report a hint fault on a lower-tier folio
 * @folio: the folio.
 * @nid: node of the CPU that faulted.
 *
 * Context: page fault; the page table lock is held.
 */
void pghot_hintfault(struct folio *folio, int nid)
{
	unsigned int stamp, latency;

	pghot_count_fault();
	stamp = pghot_hintfault_stamp();
	latency = (stamp - folio_xchg_access_time(folio, stamp)) &
		  PAGE_ACCESS_TIME_MASK;
	if (!pghot_latency_is_hot(latency))
		return;

	/* A task that may use no DRAM at all does not make pages hot. */
	if (!pghot_current_may_use_dram())
		return;

	pghot_record_access(folio_pfn(folio), nid, PGHOT_SRC_HINTFAULTS, jiffies);
}

static int pghot_hintfaults_enable(void)
{
	static_branch_enable_cpuslocked(&pghot_hintfaults_used_key);
	static_branch_enable_cpuslocked(&pghot_hintfaults_key);
	return 0;
}

static void pghot_hintfaults_disable(void)
{
	struct pglist_data *pgdat;

	static_branch_disable_cpuslocked(&pghot_hintfaults_key);
	/* Faults report with preemption off. */
	synchronize_rcu();

	/*
	 * NUMA balancing may go on from here, in memory tiering mode. What was
	 * counted in the meantime must not move its hot threshold.
	 */
	for_each_online_pgdat(pgdat) {
		pgdat->nbp_threshold = 0;
		pgdat->nbp_th_nr_cand = node_page_state(pgdat, PGPROMOTE_CANDIDATE);
		pgdat->nbp_th_start = jiffies_to_msecs(jiffies);
	}
}

static ssize_t latency_measure_show(struct kobject *kobj,
				    struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", READ_ONCE(pghot_count_faults) ?
			  "time [faults]" : "[time] faults");
}

static ssize_t latency_measure_store(struct kobject *kobj,
				     struct kobj_attribute *attr,
				     const char *buf, size_t count)
{
	static const char * const names[] = { "time", "faults" };
	int measure = sysfs_match_string(names, buf);

	if (measure < 0)
		return measure;
	WRITE_ONCE(pghot_count_faults, measure);
	return count;
}

static struct kobj_attribute latency_measure_attr = __ATTR_RW(latency_measure);

static ssize_t latency_ms_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(pghot_latency_ms));
}

static ssize_t latency_ms_store(struct kobject *kobj,
				struct kobj_attribute *attr,
				const char *buf, size_t count)
{
	long long val;
	int err = pghot_parse_range(buf, 1, PGHOT_LATENCY_MS_MAX, &val);

	if (err)
		return err;
	WRITE_ONCE(pghot_latency_ms, val);
	return count;
}

static struct kobj_attribute latency_ms_attr = __ATTR_RW(latency_ms);

static ssize_t latency_faults_show(struct kobject *kobj,
				   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(pghot_latency_faults));
}

static ssize_t latency_faults_store(struct kobject *kobj,
				    struct kobj_attribute *attr,
				    const char *buf, size_t count)
{
	long long val;
	int err = pghot_parse_range(buf, 1, PGHOT_LATENCY_FAULTS_MAX, &val);

	if (err)
		return err;
	WRITE_ONCE(pghot_latency_faults, val);
	return count;
}

static struct kobj_attribute latency_faults_attr = __ATTR_RW(latency_faults);

static struct attribute *pghot_hintfault_attrs[] = {
	&latency_measure_attr.attr,
	&latency_ms_attr.attr,
	&latency_faults_attr.attr,
	NULL
};

static const struct attribute_group pghot_hintfault_group = {
	.attrs = pghot_hintfault_attrs,
};

static const struct pghot_source pghot_hintfaults = {
	.name		= "hintfaults",
	.id		= PGHOT_SRC_HINTFAULTS,
	.caps		= PGHOT_CAP_ACCESS | PGHOT_CAP_NODE,
	.knobs		= &pghot_hintfault_group,
	.enable		= pghot_hintfaults_enable,
	.disable	= pghot_hintfaults_disable,
};

static int __init pghot_hintfaults_init(void)
{
	return pghot_register_source(&pghot_hintfaults);
}
subsys_initcall(pghot_hintfaults_init);
