// SPDX-License-Identifier: GPL-2.0
/*
 * Accesses that hardware sampled, as a source.
 *
 * The model is in hwhint.h. Units of processors, see hwhint-rate.c, call
 * pghot_hint() for each sample, in hard interrupt or NMI context. A thread reports
 * what passed the filters, and has the page tables around looked at, see
 * lookaround.c.
 */
#define pr_fmt(fmt) "pghot: " fmt

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/freezer.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/pfn.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/cputime.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/vmstat.h>
#include <linux/wait.h>

#include "hwhint.h"
#include "internal.h"
#include "sampling.h"

/* What of a CPU is written by its interrupts, and read at any time. */
struct pghot_hint_cpu {
	struct pghot_hint_ring	*ring;	/* NULL while the source is disabled */
	u64			samples;
	u64			irq_ns;
	struct pghot_guard	guard;
};

static DEFINE_PER_CPU(struct pghot_hint_cpu, pghot_hint_cpu);

/* CPUs with samples in their rings. */
static struct cpumask pghot_hint_pending;

/* The thread waits for the first sample, whoever has it. */
static atomic_t pghot_hint_asleep;

/* A ring fills up: do not wait for more. */
static atomic_t pghot_hint_hurry;

/*
 * The thread sleeps until there is any sample, also one that comes to its end in the
 * interrupt; and there was one, or the settings have changed.
 */
static atomic_t pghot_hint_deep;
static atomic_t pghot_hint_nudged;

static void pghot_hint_wake(struct irq_work *work);
static DEFINE_IRQ_WORK(pghot_hint_work, pghot_hint_wake);
static DECLARE_WAIT_QUEUE_HEAD(pghot_hint_wait);
static struct task_struct *pghot_hint_task;

/* CPU time of threads: of the present one, and with those before it. */
static u64 pghot_drain_ns;

/* Samples that the thread has reported. */
static u64 pghot_nr_useful;

/* CPUs whose units pause, and how often any did. */
static struct cpumask pghot_hint_paused;
static atomic_long_t pghot_hint_pauses = ATOMIC_LONG_INIT(0);

/* Knob: look at the page tables around. */
static bool pghot_hint_look __read_mostly = true;

/* CPUs on which a unit made way for other users of it, each time. */
static atomic_long_t pghot_hint_ways = ATOMIC_LONG_INIT(0);

static const enum vm_event_item pghot_hint_events[PGHOT_HINT_NR_ENDS] = {
	[PGHOT_HINT_USEFUL]	= HWHINT_USEFUL_EVENTS,
	[PGHOT_HINT_DROPPED]	= HWHINT_DROPPED_EVENTS,
	[PGHOT_HINT_IN_DRAM]	= HWHINT_DRAM_ACCESSES,
	[PGHOT_HINT_IN_CACHE]	= HWHINT_CACHE_HITS,
	[PGHOT_HINT_INVALID]	= HWHINT_INVALID_EVENTS,
	[PGHOT_HINT_KERNEL]	= HWHINT_KERNEL_EVENTS,
	[PGHOT_HINT_DENIED]	= HWHINT_DENIED_EVENTS,
	[PGHOT_HINT_UNRECORDED]	= HWHINT_UNRECORDED_EVENTS,
};

/* ===== Interrupt ===== */

/*
 * May the current task use DRAM? Nobody but itself gives it another policy, so the
 * one that is there is not freed under this interrupt.
 */
static bool pghot_hint_may_use_dram(void)
{
	struct mempolicy *pol = current->mempolicy;

	if (pol && pol->mode == MPOL_BIND && !pghot_nodes_have_dram(&pol->nodes))
		return false;
	return pghot_current_may_use_dram();
}

static bool pghot_has_record(unsigned long pfn)
{
	guard(rcu)();
	return pghot_section_of(pfn);
}

static void pghot_count_kind(enum pghot_hint_kind kind)
{
	switch (kind) {
	case PGHOT_HINT_LOAD:
		count_vm_event(HWHINT_LOADS);
		break;
	case PGHOT_HINT_STORE:
		count_vm_event(HWHINT_STORES);
		break;
	case PGHOT_HINT_PREFETCH:
		count_vm_event(HWHINT_PREFETCHES);
		break;
	default:
		break;
	}
}

static enum pghot_hint_end pghot_hint_filter(const struct pghot_hint *hint, bool user)
{
	enum pghot_hint_end end;
	bool recorded;

	end = pghot_hint_judge_sample(hint, user, TASK_SIZE_MAX);
	if (end != PGHOT_HINT_INVALID)
		pghot_count_kind(hint->kind);
	if (end != PGHOT_HINT_ON)
		return end;

	recorded = pghot_has_record(PHYS_PFN(hint->phys));
	if (recorded || hint->level == PGHOT_HINT_EXTMEM)
		count_vm_event(HWHINT_EXTMEM_ACCESSES);
	return pghot_hint_judge_page(hint, recorded,
				     !recorded || pghot_hint_may_use_dram());
}

static enum pghot_hint_end pghot_hint_queue(const struct pghot_hint *hint)
{
	struct pghot_hint_ring *ring = this_cpu_read(pghot_hint_cpu.ring);
	struct pghot_hint_entry entry = {
		.pfn	= PHYS_PFN(hint->phys),
		.addr	= hint->guest ? 0 : hint->addr,
		.tgid	= task_tgid_nr(current),
	};
	unsigned int cpu = smp_processor_id(), used;
	bool wake = false;

	used = ring ? pghot_hint_put(ring, &entry) : 0;
	if (!used)
		return PGHOT_HINT_DROPPED;

	/*
	 * Two handshakes with the thread: here the sample is written, then the bit
	 * is read, then whether the thread sleeps; there the other way round, each
	 * time with a full barrier in between. Pairs with those in pghot_drain()
	 * and pghot_hint_none().
	 */
	smp_mb();
	if (!cpumask_test_cpu(cpu, &pghot_hint_pending))
		cpumask_test_and_set_cpu(cpu, &pghot_hint_pending);
	if (atomic_read(&pghot_hint_asleep) && atomic_xchg(&pghot_hint_asleep, 0))
		wake = true;
	if (used == PGHOT_HINT_RING_SIZE / 2) {
		atomic_set(&pghot_hint_hurry, 1);
		wake = true;
	}
	if (wake)
		irq_work_queue(&pghot_hint_work);
	return PGHOT_HINT_ON;
}

/* The same as pghot_hint(), told whether the current task is a user's program. */
void pghot_hint_count(const struct pghot_hint *hint, bool user)
{
	enum pghot_hint_end end;

	this_cpu_inc(pghot_hint_cpu.samples);
	count_vm_event(HWHINT_TOTAL_EVENTS);

	end = pghot_hint_filter(hint, user);
	if (end == PGHOT_HINT_ON)
		end = pghot_hint_queue(hint);
	if (end != PGHOT_HINT_ON)
		count_vm_event(pghot_hint_events[end]);
}

/* @ns were spent. Returns whether this CPU has time for more interrupts. */
static bool pghot_hint_spend(u64 ns)
{
	return pghot_guard_take(this_cpu_ptr(&pghot_hint_cpu.guard), local_clock(), ns,
				READ_ONCE(pghot_hint_share));
}

/**
 * pghot_hint - a unit has a sample
 * @hint: what it says.
 *
 * Context: hard interrupt or NMI, on the CPU that the sample comes from, and while
 *	    the task runs that it comes from. No lock, bounded. Nothing that calls
 *	    it may interrupt it.
 * Return: true to go on, false if the unit of this CPU is to pause until @resume is
 *	   called.
 */
bool pghot_hint(const struct pghot_hint *hint)
{
	pghot_hint_count(hint, current->mm && !(current->flags & PF_KTHREAD));
	if (atomic_read(&pghot_hint_deep) && atomic_xchg(&pghot_hint_deep, 0)) {
		atomic_set(&pghot_hint_nudged, 1);
		irq_work_queue(&pghot_hint_work);
	}
	if (likely(pghot_hint_spend(0)))
		return true;

	/* The thread looks there at the end of each round, and before it sleeps. */
	if (!cpumask_test_and_set_cpu(smp_processor_id(), &pghot_hint_paused))
		atomic_long_inc(&pghot_hint_pauses);
	if (atomic_xchg(&pghot_hint_asleep, 0))
		irq_work_queue(&pghot_hint_work);
	return false;
}

/**
 * pghot_hint_took - an interrupt of a unit has ended
 * @ns: the time that it took.
 *
 * Context: hard interrupt or NMI, on the CPU of the interrupt.
 */
void pghot_hint_took(u64 ns)
{
	this_cpu_add(pghot_hint_cpu.irq_ns, ns);
	pghot_hint_spend(ns);
}

/**
 * pghot_hint_gave_way - somebody else uses the unit on some CPUs now
 * @nr_cpus: number of CPUs on which that is new.
 *
 * Context: any.
 */
void pghot_hint_gave_way(unsigned int nr_cpus)
{
	atomic_long_add(nr_cpus, &pghot_hint_ways);
}

/* ===== Thread ===== */

static void pghot_hint_wake(struct irq_work *work)
{
	wake_up(&pghot_hint_wait);
}

static void pghot_drain_ring(struct pghot_hint_ring *ring, int nid)
{
	struct pghot_hint_entry entry;
	unsigned long nr = 0;

	/* Who fills it faster than this empties it is met again, see the caller. */
	while (nr < PGHOT_HINT_RING_SIZE && pghot_hint_get(ring, &entry)) {
		pghot_record_access(entry.pfn, nid, PGHOT_SRC_HWHINTS, jiffies);
		if (entry.addr && READ_ONCE(pghot_hint_look))
			pghot_look_around(entry.tgid, entry.addr, nid);
		nr++;
	}
	count_vm_events(HWHINT_USEFUL_EVENTS, nr);
	WRITE_ONCE(pghot_nr_useful, pghot_nr_useful + nr);
}

/* Report all that is in the rings. */
static void pghot_drain(void)
{
	struct pghot_hint_ring *ring;
	unsigned int cpu;

	atomic_set(&pghot_hint_hurry, 0);
	for_each_cpu(cpu, &pghot_hint_pending) {
		/* A full barrier: pairs with the one in pghot_hint_queue(). */
		if (!cpumask_test_and_clear_cpu(cpu, &pghot_hint_pending))
			continue;
		ring = per_cpu(pghot_hint_cpu.ring, cpu);
		pghot_drain_ring(ring, cpu_to_node(cpu));
		if (READ_ONCE(ring->head) != ring->tail)
			cpumask_set_cpu(cpu, &pghot_hint_pending);
		cond_resched();
	}
}

static bool pghot_hint_idle(void)
{
	return cpumask_empty(&pghot_hint_pending) && cpumask_empty(&pghot_hint_paused);
}

/* Whether there is nothing to do. The next sample wakes the thread, then. */
static bool pghot_hint_none(void)
{
	if (!pghot_hint_idle())
		return false;

	atomic_set(&pghot_hint_asleep, 1);
	/* Pairs with the barriers in pghot_hint_queue() and pghot_hint(). */
	smp_mb__after_atomic();
	return pghot_hint_idle();
}

/* Have the thread look at the settings. */
void pghot_hint_nudge(void)
{
	atomic_set(&pghot_hint_nudged, 1);
	wake_up(&pghot_hint_wait);
}

static bool pghot_hint_called(void)
{
	return kthread_should_stop() || atomic_read(&pghot_hint_nudged) ||
	       !pghot_hint_none();
}

/* Sleep until there is something to do, or for the controller's time. */
static void pghot_hint_sleep(void)
{
	bool any;
	long wait = pghot_hint_patience(&any);

	atomic_set(&pghot_hint_deep, any);
	wait_event_freezable_timeout(pghot_hint_wait, pghot_hint_called(), wait);
	atomic_set(&pghot_hint_deep, 0);
	atomic_set(&pghot_hint_nudged, 0);
}

static int pghot_hint_drainer(void *arg)
{
	u64 before = READ_ONCE(pghot_drain_ns);

	set_freezable();
	while (!kthread_should_stop()) {
		pghot_hint_sleep();
		try_to_freeze();
		/* Samples come one by one: fetch some at a time. */
		wait_event_interruptible_timeout(pghot_hint_wait,
						 kthread_should_stop() ||
						 atomic_read(&pghot_hint_hurry),
						 msecs_to_jiffies(PGHOT_HINT_BATCH_MS));
		pghot_drain();
		WRITE_ONCE(pghot_drain_ns, before + task_sched_runtime(current));
		pghot_hint_tick();
		pghot_hint_resume(&pghot_hint_paused);
	}
	/* The unit is stopped: these are the last ones. */
	while (!cpumask_empty(&pghot_hint_pending))
		pghot_drain();
	WRITE_ONCE(pghot_drain_ns, before + task_sched_runtime(current));
	return 0;
}

/* ===== What files show ===== */

bool pghot_hint_looks_around(void)
{
	return READ_ONCE(pghot_hint_look);
}

void pghot_hint_set_look_around(bool on)
{
	WRITE_ONCE(pghot_hint_look, on);
}

void pghot_hint_get_cost(struct pghot_hint_cost *cost)
{
	const struct pghot_hint_cpu *c;
	unsigned int cpu;

	*cost = (struct pghot_hint_cost) {
		.drain_ns	= READ_ONCE(pghot_drain_ns),
		.useful		= READ_ONCE(pghot_nr_useful),
	};
	for_each_possible_cpu(cpu) {
		c = per_cpu_ptr(&pghot_hint_cpu, cpu);
		cost->samples += READ_ONCE(c->samples);
		cost->irq_ns += READ_ONCE(c->irq_ns);
	}
}

unsigned long pghot_hint_times_paused(void)
{
	return atomic_long_read(&pghot_hint_pauses);
}

unsigned long pghot_hint_times_given_way(void)
{
	return atomic_long_read(&pghot_hint_ways);
}

/* ===== Enable and disable ===== */

static void pghot_free_rings(void)
{
	struct pghot_hint_ring *ring;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		ring = per_cpu(pghot_hint_cpu.ring, cpu);
		WRITE_ONCE(per_cpu(pghot_hint_cpu.ring, cpu), NULL);
		kfree(ring);
	}
}

/* For CPUs that are offline, too: one that comes up samples at once. */
static int pghot_alloc_rings(void)
{
	struct pghot_hint_ring *ring;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		ring = kzalloc_node(sizeof(*ring), GFP_KERNEL, cpu_to_node(cpu));
		if (!ring) {
			pghot_free_rings();
			return -ENOMEM;
		}
		WRITE_ONCE(per_cpu(pghot_hint_cpu.ring, cpu), ring);
	}
	return 0;
}

static int pghot_start_drainer(void)
{
	struct task_struct *task;

	cpumask_clear(&pghot_hint_pending);
	cpumask_clear(&pghot_hint_paused);
	atomic_set(&pghot_hint_asleep, 0);
	atomic_set(&pghot_hint_hurry, 0);
	atomic_set(&pghot_hint_deep, 0);
	atomic_set(&pghot_hint_nudged, 0);
	/* Any CPU that has nothing better to do. */
	task = kthread_run(pghot_hint_drainer, NULL, "kpghothintd");
	if (IS_ERR(task))
		return PTR_ERR(task);
	pghot_hint_task = task;
	return 0;
}

static void pghot_stop_drainer(void)
{
	kthread_stop(pghot_hint_task);
	pghot_hint_task = NULL;
	irq_work_sync(&pghot_hint_work);
}

static int pghot_hints_enable(void)
{
	int err;

	if (!pghot_hint_used_unit())
		return -ENODEV;

	err = pghot_alloc_rings();
	if (err)
		return err;
	err = pghot_look_start();
	if (err)
		goto free;
	err = pghot_start_drainer();
	if (err)
		goto stop_look;
	err = pghot_hint_start();
	if (err)
		goto stop_drain;
	return 0;

stop_drain:
	pghot_stop_drainer();
stop_look:
	pghot_look_stop();
free:
	pghot_free_rings();
	return err;
}

static void pghot_hints_disable(void)
{
	pghot_hint_stop();
	pghot_stop_drainer();
	pghot_look_stop();
	pghot_free_rings();
}

static const struct pghot_source pghot_hwhints = {
	.name		= "hwhints",
	.id		= PGHOT_SRC_HWHINTS,
	.caps		= PGHOT_CAP_ACCESS | PGHOT_CAP_NODE,
	.knobs		= &pghot_hint_group,
	.enable		= pghot_hints_enable,
	.disable	= pghot_hints_disable,
};

static int __init pghot_hints_init(void)
{
	return pghot_register_source(&pghot_hwhints);
}
subsys_initcall(pghot_hints_init);
