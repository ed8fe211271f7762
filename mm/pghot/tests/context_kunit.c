// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of reports from contexts in which little is allowed, and from several
 * CPUs at once. With lockdep they show that the record path takes no lock that
 * it must not take there. They need a lower-tier node.
 */
#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/bottom_half.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/nmi.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#ifdef CONFIG_X86_LOCAL_APIC
#include <asm/apic.h>
#endif

#include "fixture.h"

/* ===== Interrupts ===== */

struct irq_report {
	struct irq_work		work;
	struct pghot_fixture	*fix;
	unsigned long		pfn;
	bool			hardirq;
	bool			recorded;
};

static void report_from_irq(struct irq_work *work)
{
	struct irq_report *r = container_of(work, struct irq_report, work);

	r->hardirq = in_hardirq();
	r->recorded = pghot_record_access(r->pfn, r->fix->dram_nid,
					  PGHOT_SRC_HINTFAULTS, r->fix->now);
}

/* Report once in hard interrupt context, and wait for it. */
static void interrupt_and_report(struct kunit *test, struct irq_report *r)
{
	r->hardirq = false;
	r->recorded = false;
	KUNIT_ASSERT_TRUE(test, irq_work_queue(&r->work));
	irq_work_sync(&r->work);
	KUNIT_ASSERT_TRUE(test, r->hardirq);
	KUNIT_ASSERT_TRUE(test, r->recorded);
}

static struct irq_report *irq_report(struct kunit *test, unsigned long pfn)
{
	struct irq_report *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->work = IRQ_WORK_INIT_HARD(report_from_irq);
	r->fix = test->priv;
	r->pfn = pfn;
	return r;
}

static void hardirq_records(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 0, 0));
	struct irq_report *r = irq_report(test, pfn);
	unsigned int i;

	for (i = 1; i <= 20; i++) {
		interrupt_and_report(test, r);
		KUNIT_ASSERT_EQ(test, *pghot_record_of(pfn),
				pghot_rec(min(i, 15), fix->epoch, fix->dram_index));
		KUNIT_ASSERT_EQ(test, pghot_is_candidate(pfn), i >= 15);
	}
}

/* The whole way: an interrupt makes a candidate, and kmigrated comes to see it. */
static void hardirq_wakes_kmigrated(struct kunit *test)
{
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 0, 0));
	struct irq_report *r = irq_report(test, pfn);
	unsigned int i;

	KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_PROMOTE_RATE_LIMIT_MBPS, 1024), 0);
	KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_FREQ_THRESHOLD, 1), 0);
	KUNIT_ASSERT_EQ(test, pghot_knob_set(PGHOT_KMIGRATED_SLEEP_MS, 10), 0);
	for (i = 0; i < 20; i++) {
		interrupt_and_report(test, r);
		/* A page of the kernel's is not for it: it drops the heat. */
		KUNIT_ASSERT_TRUE(test, pghot_wait_dropped(pfn));
		KUNIT_ASSERT_EQ(test, pghot_rec_heat(READ_ONCE(*pghot_record_of(pfn))), 0);
	}
}

static bool report_atomic(struct pghot_fixture *fix, unsigned long pfn)
{
	return pghot_record_access(pfn, fix->dram_nid, PGHOT_SRC_HINTFAULTS, fix->now);
}

/* Where a page table lock is held, and worse. */
static void atomic_contexts_record(struct kunit *test)
{
	struct pghot_fixture *fix = test->priv;
	unsigned long pfn = page_to_pfn(pghot_slow_pages(test, 0, 0));
	static DEFINE_RAW_SPINLOCK(lock);
	unsigned long flags;
	bool ok = true;

	preempt_disable();
	ok &= report_atomic(fix, pfn);
	preempt_enable();

	local_bh_disable();
	ok &= report_atomic(fix, pfn);
	local_bh_enable();

	local_irq_save(flags);
	ok &= report_atomic(fix, pfn);
	local_irq_restore(flags);

	/* Nothing that may sleep on PREEMPT_RT either. */
	raw_spin_lock_irqsave(&lock, flags);
	ok &= report_atomic(fix, pfn);
	raw_spin_unlock_irqrestore(&lock, flags);

	KUNIT_EXPECT_TRUE(test, ok);
	KUNIT_EXPECT_EQ(test, pghot_rec_heat(*pghot_record_of(pfn)), 4);
}

/* ===== Several CPUs ===== */

/*
 * The record path gives up after this many lost races. Fewer reports by others
 * cannot make a report fail.
 */
#define SAFE_RIVALS	8

/* CPUs that report on one page at the same time. */
struct race {
	unsigned long	pfn;
	u16		*rec;
	unsigned long	now;
	unsigned int	epoch;
	/* Reports carry two different nodes, so that each one changes the record. */
	int		nids[2];
	unsigned int	codes[2];
	unsigned int	nr_cpus;
	unsigned int	nr_reports;	/* by each CPU */
	atomic_t	waiting;
	atomic_t	recorded;
	atomic_t	invalid;
};

/* Report, and look at the record in between: it must be one at any time. */
static void race_reports(struct race *r, unsigned int nr)
{
	unsigned int cpu = raw_smp_processor_id(), i, heat = 0, recorded = 0, invalid = 0;
	u16 rec;

	for (i = 0; i < nr; i++) {
		recorded += pghot_record_access(r->pfn, r->nids[(cpu + i) % 2],
						PGHOT_SRC_HINTFAULTS, r->now);
		rec = READ_ONCE(*r->rec);
		invalid += pghot_rec_epoch(rec) != r->epoch % PGHOT_NR_EPOCHS ||
			   pghot_rec_heat(rec) < heat ||
			   (pghot_rec_node(rec) != r->codes[0] &&
			    pghot_rec_node(rec) != r->codes[1]);
		heat = pghot_rec_heat(rec);
	}
	atomic_add(recorded, &r->recorded);
	atomic_add(invalid, &r->invalid);
}

static void race_on_cpu(void *arg)
{
	struct race *r = arg;
	unsigned int spins;

	/* Begin together. A CPU that comes late does not keep the others. */
	atomic_dec(&r->waiting);
	for (spins = 0; spins < 1000000 && atomic_read(&r->waiting) > 0; spins++)
		cpu_relax();

	race_reports(r, r->nr_reports);
}

/* As many CPUs as there are, up to @max. */
static void race_cpus(struct cpumask *mask, unsigned int max)
{
	unsigned int cpu;

	cpumask_clear(mask);
	for_each_online_cpu(cpu)
		if (cpumask_weight(mask) < max)
			cpumask_set_cpu(cpu, mask);
}

static void race_init(struct kunit *test, struct race *r)
{
	struct pghot_fixture *fix = test->priv;

	*r = (struct race) {
		.pfn	= page_to_pfn(pghot_slow_pages(test, 0, 0)),
		.now	= fix->now,
		.epoch	= fix->epoch,
		.nids	= { fix->dram_nid, NUMA_NO_NODE },
		.codes	= { fix->dram_index, PGHOT_NODE_NONE },
	};
	r->rec = pghot_record_of(r->pfn);
}

static void race_run(struct race *r, const struct cpumask *mask)
{
	pghot_reset_record(r->pfn);
	atomic_set(&r->waiting, r->nr_cpus);
	atomic_set(&r->recorded, 0);
	atomic_set(&r->invalid, 0);
	on_each_cpu_mask(mask, race_on_cpu, r, true);
}

/* Below saturation each report counts, and none is lost where none may be. */
static void cpus_lose_nothing(struct kunit *test)
{
	struct race *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	cpumask_var_t mask;
	unsigned int round;

	KUNIT_ASSERT_NOT_NULL(test, r);
	race_init(test, r);
	KUNIT_ASSERT_TRUE(test, zalloc_cpumask_var(&mask, GFP_KERNEL));

	cpus_read_lock();
	race_cpus(mask, SAFE_RIVALS + 1);
	r->nr_cpus = cpumask_weight(mask);
	r->nr_reports = r->nr_cpus == 1 ? 14 :
			min(SAFE_RIVALS / (r->nr_cpus - 1), 14 / r->nr_cpus);
	for (round = 0; round < 200; round++) {
		race_run(r, mask);
		if (atomic_read(&r->recorded) != r->nr_cpus * r->nr_reports ||
		    pghot_rec_heat(*r->rec) != r->nr_cpus * r->nr_reports ||
		    atomic_read(&r->invalid))
			break;
	}
	cpus_read_unlock();
	free_cpumask_var(mask);

	KUNIT_EXPECT_EQ(test, round, 200);
	KUNIT_EXPECT_EQ(test, atomic_read(&r->recorded), r->nr_cpus * r->nr_reports);
	KUNIT_EXPECT_EQ(test, pghot_rec_heat(*r->rec), r->nr_cpus * r->nr_reports);
	KUNIT_EXPECT_EQ(test, atomic_read(&r->invalid), 0);
	kunit_info(test, "%u CPUs, %u reports each\n", r->nr_cpus, r->nr_reports);
}

/* Whatever is lost, heat is never more than was recorded, and ends at 15. */
static void cpus_saturate(struct kunit *test)
{
	struct race *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	cpumask_var_t mask;
	unsigned int round, code;

	KUNIT_ASSERT_NOT_NULL(test, r);
	race_init(test, r);
	KUNIT_ASSERT_TRUE(test, zalloc_cpumask_var(&mask, GFP_KERNEL));

	cpus_read_lock();
	race_cpus(mask, nr_cpu_ids);
	r->nr_cpus = cpumask_weight(mask);
	r->nr_reports = 200;
	for (round = 0; round < 50; round++) {
		race_run(r, mask);
		if (pghot_rec_heat(*r->rec) != 15 || atomic_read(&r->invalid) ||
		    !pghot_is_candidate(r->pfn))
			break;
	}
	cpus_read_unlock();
	free_cpumask_var(mask);

	KUNIT_EXPECT_EQ(test, round, 50);
	KUNIT_EXPECT_EQ(test, pghot_rec_heat(*r->rec), 15);
	KUNIT_EXPECT_EQ(test, pghot_rec_epoch(*r->rec), r->epoch % PGHOT_NR_EPOCHS);
	code = pghot_rec_node(*r->rec);
	KUNIT_EXPECT_TRUE(test, code == r->codes[0] || code == r->codes[1]);
	KUNIT_EXPECT_EQ(test, atomic_read(&r->invalid), 0);
	KUNIT_EXPECT_GE(test, atomic_read(&r->recorded), 15);
	KUNIT_EXPECT_TRUE(test, pghot_is_candidate(r->pfn));
}

/* ===== NMI ===== */

#ifdef CONFIG_X86_LOCAL_APIC

static struct race *nmi_race;
static struct cpumask nmi_pending;
static bool nmi_context;

static int report_from_nmi(unsigned int val, struct pt_regs *regs)
{
	if (!cpumask_test_cpu(raw_smp_processor_id(), &nmi_pending))
		return NMI_DONE;

	if (!in_nmi())
		WRITE_ONCE(nmi_context, false);
	race_reports(nmi_race, 1);
	/* After it: who waits for this bit sees the report. */
	smp_mb__before_atomic();
	cpumask_clear_cpu(raw_smp_processor_id(), &nmi_pending);
	return NMI_HANDLED;
}

/* NMIs hit all CPUs, this one while it reports on the same page itself. */
static void nmi_records(struct kunit *test)
{
	struct race *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	unsigned int round, expected = 0, tries = 0;
	bool late = false;

	if (!boot_cpu_has(X86_FEATURE_APIC))
		kunit_skip(test, "needs a local APIC");
	KUNIT_ASSERT_NOT_NULL(test, r);
	race_init(test, r);
	nmi_race = r;
	nmi_context = true;
	KUNIT_ASSERT_EQ(test, register_nmi_handler(NMI_LOCAL, report_from_nmi, NMI_FLAG_FIRST,
						   "pghot_kunit"), 0);

	cpus_read_lock();
	for (round = 0; round < 30 && !late; round++) {
		pghot_reset_record(r->pfn);
		atomic_set(&r->recorded, 0);
		cpumask_copy(&nmi_pending, cpu_online_mask);
		/* Others look at the mask in the handler. */
		smp_mb();
		__apic_send_IPI_mask(&nmi_pending, NMI_VECTOR);
		race_reports(r, 3);
		for (tries = 0; !cpumask_empty(&nmi_pending); tries++) {
			if (tries == 10 * USEC_PER_SEC) {
				late = true;
				break;
			}
			udelay(1);
		}
		expected = min(15, atomic_read(&r->recorded));
		if (pghot_rec_heat(READ_ONCE(*r->rec)) != expected)
			break;
	}
	cpus_read_unlock();
	unregister_nmi_handler(NMI_LOCAL, "pghot_kunit");

	KUNIT_EXPECT_FALSE_MSG(test, late, "CPUs %*pbl got no NMI", cpumask_pr_args(&nmi_pending));
	KUNIT_EXPECT_TRUE(test, nmi_context);
	KUNIT_EXPECT_EQ(test, round, 30);
	KUNIT_EXPECT_EQ(test, pghot_rec_heat(*r->rec), expected);
	KUNIT_EXPECT_EQ(test, atomic_read(&r->invalid), 0);
	/* Each CPU's NMI and the three of this one. */
	KUNIT_EXPECT_GE(test, atomic_read(&r->recorded), 4);
	nmi_race = NULL;
}

#else

static void nmi_records(struct kunit *test)
{
	kunit_skip(test, "there is no way to send an NMI here");
}

#endif /* CONFIG_X86_LOCAL_APIC */

static struct kunit_case context_cases[] = {
	KUNIT_CASE(hardirq_records),
	KUNIT_CASE(hardirq_wakes_kmigrated),
	KUNIT_CASE(atomic_contexts_record),
	KUNIT_CASE(cpus_lose_nothing),
	KUNIT_CASE(cpus_saturate),
	KUNIT_CASE(nmi_records),
	{}
};

static struct kunit_suite context_suite = {
	.name		= "pghot_context",
	.init		= pghot_fixture_init,
	.exit		= pghot_fixture_exit,
	.test_cases	= context_cases,
};

kunit_test_suite(context_suite);
