// SPDX-License-Identifier: GPL-2.0
/*
 * IBS Op as a unit that samples memory accesses for pghot.
 *
 * IBS Op belongs to perf, and has one counter a CPU. So pghot is a user of perf, with
 * an event on each CPU, and one that makes way: while anybody else has an event for
 * ibs_op that may be scheduled on a CPU, the one there is disabled. perf tells when
 * such events come and go; a worker enables and disables, as that sleeps. Those who
 * open an event get the counter within milliseconds. It is taken back a second after
 * the last of them has gone, as tools like to open and close events several times.
 */
#define pr_fmt(fmt) "amd_ibs_op: " fmt

#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/init.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/pghot.h>
#include <linux/printk.h>
#include <linux/processor.h>
#include <linux/suspend.h>
#include <linux/workqueue.h>

#include <asm/amd/ibs_op_hints.h>
#include <asm/perf_event.h>

/* As the Memory Profiler: shorter ones are an interrupt storm. */
#define IBS_OP_MIN_PERIOD	5008

/* perf's attr.config1 and config2 of ibs_op: see its format directory in sysfs. */
#define IBS_OP_CONFIG2_SWFILT	BIT_ULL(0)

/* How long the counter must not have been wanted before it is taken back. */
#define IBS_OP_RETURN_DELAY	HZ

/**
 * struct ibs_op_cpu - the event of a CPU
 * @event: the event, or NULL. Protected by ibs_op_lock.
 * @off: it is disabled, as others want the counter. Protected by ibs_op_lock.
 * @others: how many events others have that are bound to this CPU.
 */
struct ibs_op_cpu {
	struct perf_event	*event;
	bool			off;
	atomic_t		others;
};

static DEFINE_PER_CPU(struct ibs_op_cpu, ibs_op_cpu);

/* Events of others that are bound to no CPU, but to a task. */
static atomic_t ibs_op_anywhere;

/* Inside the lock of CPU hotplug. */
static DEFINE_MUTEX(ibs_op_lock);

/* Protected by ibs_op_lock: how events are to be, whether there are any. */
static struct perf_event_attr ibs_op_attr = {
	.size		= sizeof(struct perf_event_attr),
	.sample_type	= PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_SRC,
	.exclude_kernel	= 1,
	.disabled	= 1,
};

static bool ibs_op_sampling;

/* The machine goes to sleep: all are to be disabled. Protected by ibs_op_lock. */
static bool ibs_op_asleep;

static void ibs_op_review(struct work_struct *work);
static DECLARE_DELAYED_WORK(ibs_op_work, ibs_op_review);

/* ===== Samples ===== */

/* NMI, called by perf. */
static void ibs_op_overflow(struct perf_event *event, struct perf_sample_data *data,
			    struct pt_regs *regs)
{
	struct pghot_hint hint = ibs_op_hint(data);

	hint.phys &= __PHYSICAL_MASK;
	hint.guest = perf_guest_state();
	if (!pghot_hint(&hint))
		perf_event_disable_inatomic(event);
}

/* ===== Making way ===== */

static bool ibs_op_wanted(unsigned int cpu)
{
	return atomic_read(&ibs_op_anywhere) > 0 ||
	       atomic_read(per_cpu_ptr(&ibs_op_cpu.others, cpu)) > 0;
}

/* perf's side: @nr events more on @cpu, or bound to none. */
static void ibs_op_others(int cpu, int nr)
{
	atomic_t *count = cpu < 0 ? &ibs_op_anywhere : per_cpu_ptr(&ibs_op_cpu.others, cpu);
	int now = atomic_add_return(nr, count);

	if (nr > 0 && now == nr)
		mod_delayed_work(system_dfl_wq, &ibs_op_work, 0);
	else if (!now)
		/* Leaves one alone that is about to run. */
		queue_delayed_work(system_dfl_wq, &ibs_op_work, IBS_OP_RETURN_DELAY);
}

/* Returns whether it has changed. */
static bool ibs_op_switch(struct ibs_op_cpu *c, bool off)
{
	lockdep_assert_held(&ibs_op_lock);

	if (!c->event || c->off == off)
		return false;
	c->off = off;
	if (off)
		perf_event_disable(c->event);
	else
		perf_event_enable(c->event);
	return true;
}

static void ibs_op_review(struct work_struct *work)
{
	unsigned int cpu, gave = 0, took = 0;

	guard(mutex)(&ibs_op_lock);
	for_each_possible_cpu(cpu) {
		struct ibs_op_cpu *c = per_cpu_ptr(&ibs_op_cpu, cpu);
		bool wanted = ibs_op_wanted(cpu);

		if (ibs_op_switch(c, wanted || ibs_op_asleep)) {
			gave += wanted;
			took += !c->off;
		}
	}
	if (gave) {
		pghot_hint_gave_way(gave);
		pr_info_ratelimited("perf is used: no accesses are sampled on %u more CPUs\n",
				    gave);
	}
	if (took)
		pr_info_ratelimited("accesses are sampled on %u CPUs again\n", took);
}

static const struct ibs_op_background ibs_op_background = {
	.handler	= ibs_op_overflow,
	.others		= ibs_op_others,
	.took		= pghot_hint_took,
};

/* ===== Events ===== */

static int ibs_op_create(unsigned int cpu)
{
	struct ibs_op_cpu *c = per_cpu_ptr(&ibs_op_cpu, cpu);
	struct perf_event *event;

	lockdep_assert_held(&ibs_op_lock);

	event = perf_event_create_kernel_counter(&ibs_op_attr, cpu, NULL,
						 ibs_op_overflow, NULL);
	if (IS_ERR(event))
		return PTR_ERR(event);
	c->event = event;
	/* It has been created disabled. */
	c->off = true;
	if (!ibs_op_wanted(cpu) && !ibs_op_asleep)
		ibs_op_switch(c, false);
	else if (!ibs_op_asleep)
		pghot_hint_gave_way(1);
	return 0;
}

static void ibs_op_release(unsigned int cpu)
{
	struct ibs_op_cpu *c = per_cpu_ptr(&ibs_op_cpu, cpu);

	lockdep_assert_held(&ibs_op_lock);

	if (!c->event)
		return;
	perf_event_release_kernel(c->event);
	c->event = NULL;
}

static void ibs_op_release_all(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		ibs_op_release(cpu);
}

static int ibs_op_create_all(void)
{
	unsigned int cpu;
	int err;

	lockdep_assert_cpus_held();

	for_each_online_cpu(cpu) {
		err = ibs_op_create(cpu);
		if (err) {
			ibs_op_release_all();
			return err;
		}
	}
	return 0;
}

/* ===== Unit ===== */

static void ibs_op_set_attr(const struct pghot_hint_config *config)
{
	ibs_op_attr.sample_period = config->period;
	ibs_op_attr.config = get_ibs_caps() & IBS_CAPS_OPCNT ? IBS_OP_CNT_CTL : 0;
	if (config->l3miss_only)
		ibs_op_attr.config |= IBS_OP_L3MISSONLY;
	ibs_op_attr.config1 = config->latency;
	/* Without a filter for the kernel in the unit, perf has one. */
	ibs_op_attr.config2 = get_ibs_caps() & IBS_CAPS_BIT63_FILTER ?
			      0 : IBS_OP_CONFIG2_SWFILT;
}

static int ibs_op_start(const struct pghot_hint_config *config)
{
	int err;

	guard(mutex)(&ibs_op_lock);
	ibs_op_set_attr(config);
	err = ibs_op_create_all();
	ibs_op_sampling = !err;
	return err;
}

/* No NMI calls ibs_op_overflow() for an event that was released. */
static void ibs_op_stop(void)
{
	guard(mutex)(&ibs_op_lock);
	ibs_op_release_all();
	ibs_op_sampling = false;
}

static int ibs_op_change_period(void)
{
	unsigned int cpu;
	int err;

	lockdep_assert_held(&ibs_op_lock);

	for_each_possible_cpu(cpu) {
		struct perf_event *event = per_cpu(ibs_op_cpu.event, cpu);

		err = event ? perf_event_period(event, ibs_op_attr.sample_period) : 0;
		if (err)
			return err;
	}
	return 0;
}

static int ibs_op_configure(const struct pghot_hint_config *config)
{
	struct perf_event_attr old;
	int err;

	guard(mutex)(&ibs_op_lock);
	old = ibs_op_attr;
	ibs_op_set_attr(config);
	if (old.config == ibs_op_attr.config && old.config1 == ibs_op_attr.config1)
		return ibs_op_change_period();

	ibs_op_release_all();
	err = ibs_op_create_all();
	if (err) {
		ibs_op_attr = old;
		/* What worked before is likely to work again. */
		ibs_op_create_all();
	}
	return err;
}

static void ibs_op_resume(unsigned int cpu)
{
	struct ibs_op_cpu *c = per_cpu_ptr(&ibs_op_cpu, cpu);

	guard(mutex)(&ibs_op_lock);
	if (!c->event || c->off)
		return;
	/* ibs_op_overflow() has asked for this; it may be still on its way. */
	perf_event_disable(c->event);
	perf_event_enable(c->event);
}

static struct pghot_hint_unit ibs_op_unit __ro_after_init = {
	.name		= "ibs_op",
	.rank		= 1,
	.min_period	= IBS_OP_MIN_PERIOD,
	.max_period	= IBS_OP_MAX_CNT << 4,
	.start		= ibs_op_start,
	.stop		= ibs_op_stop,
	.configure	= ibs_op_configure,
	.resume		= ibs_op_resume,
};

/* ===== CPUs and power management ===== */

static int ibs_op_online(unsigned int cpu)
{
	guard(mutex)(&ibs_op_lock);
	if (ibs_op_sampling && ibs_op_create(cpu))
		pr_warn_once("cpu %u: no event: accesses are not sampled there\n", cpu);
	return 0;
}

static int ibs_op_offline(unsigned int cpu)
{
	guard(mutex)(&ibs_op_lock);
	ibs_op_release(cpu);
	return 0;
}

/* The registers do not survive, and perf does not write them again by itself. */
static int ibs_op_sleep(struct notifier_block *nb, unsigned long action, void *data)
{
	bool asleep = action == PM_SUSPEND_PREPARE || action == PM_HIBERNATION_PREPARE;

	if (!asleep && action != PM_POST_SUSPEND && action != PM_POST_HIBERNATION)
		return NOTIFY_DONE;
	scoped_guard(mutex, &ibs_op_lock)
		ibs_op_asleep = asleep;
	ibs_op_review(NULL);
	return NOTIFY_DONE;
}

static struct notifier_block ibs_op_sleep_nb = {
	.notifier_call = ibs_op_sleep,
};

/* ===== Boot ===== */

static int __init ibs_op_hints_init(void)
{
	u32 caps = get_ibs_caps();
	int type, state;

	if (!(caps & IBS_CAPS_OPSAM)) {
		pr_debug("not present\n");
		return -ENODEV;
	}

	state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "perf/x86/amd/ibs_op_hints:online",
					  ibs_op_online, ibs_op_offline);
	if (state < 0)
		return state;

	type = ibs_op_register_background(&ibs_op_background);
	if (type < 0) {
		cpuhp_remove_state_nocalls(state);
		return type;
	}
	ibs_op_attr.type = type;

	if (caps & IBS_CAPS_ZEN4)
		ibs_op_unit.caps |= PGHOT_HINT_CAP_L3MISS;
	if (caps & IBS_CAPS_OPLDLAT)
		ibs_op_unit.caps |= PGHOT_HINT_CAP_LATENCY;
	if (caps & IBS_CAPS_OPCNTEXT)
		ibs_op_unit.max_period |= IBS_OP_MAX_CNT_EXT_MASK;
	register_pm_notifier(&ibs_op_sleep_nb);
	return pghot_register_hint_unit(&ibs_op_unit);
}
device_initcall(ibs_op_hints_init);
