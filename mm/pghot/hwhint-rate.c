// SPDX-License-Identifier: GPL-2.0
/*
 * How the processor samples: which unit, with which settings, how often. The
 * controller that finds the period is in sampling.h; here it gets its numbers, and
 * its will.
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/timekeeping.h>
#include <linux/vmstat.h>

#include "hwhint.h"
#include "internal.h"
#include "sampling.h"

/* Protects what follows. Inside pghot_lock. */
static DEFINE_MUTEX(pghot_hint_lock);

/* The unit that is used, whether it samples, and how. */
static const struct pghot_hint_unit *pghot_hint_unit;
static bool pghot_hint_sampling;
static struct pghot_hint_config pghot_hint_config = {
	.period		= 10000,
	.l3miss_only	= true,
};

/* What has come since the boot, for the controller. */
struct pghot_hint_sums {
	u64	at;		/* when, in ns */
	u64	samples;
	u64	useful;
	u64	cost_ns;
	u64	promoted;
	u64	pauses;
};

/*
 * Whether the period is found by the controller in sampling.h, in what share of CPU
 * time, in 1/1000, its state, and what had come by the last tick.
 */
static bool pghot_hint_auto = true;
static unsigned int pghot_hint_budget __read_mostly = 5;
static struct pghot_sampling pghot_hint_rate;
static struct pghot_hint_sums pghot_hint_last;

/*
 * Thousandths of its time that a CPU may spend in interrupts of a unit, with a period
 * that the administrator chose; then the unit pauses.
 */
#define PGHOT_HINT_MAX_SHARE	200

/* The same with any period, read in interrupts. */
unsigned int pghot_hint_share __read_mostly = PGHOT_HINT_MAX_SHARE;

/* ===== Unit ===== */

const struct pghot_hint_unit *pghot_hint_used_unit(void)
{
	return READ_ONCE(pghot_hint_unit);
}

void pghot_hint_get_config(struct pghot_hint_config *config)
{
	guard(mutex)(&pghot_hint_lock);
	*config = pghot_hint_config;
}

/* Sample in another way, on all CPUs. */
static int pghot_hint_configure(const struct pghot_hint_config *config)
{
	int err = 0;

	lockdep_assert_cpus_held();
	lockdep_assert_held(&pghot_hint_lock);

	if (pghot_hint_sampling)
		err = pghot_hint_unit->configure(config);
	if (!err)
		pghot_hint_config = *config;
	return err;
}

/* All that the controller goes by, as sums. */
static struct pghot_hint_sums pghot_hint_sum_up(void)
{
	struct pghot_hint_cost cost;

	pghot_hint_get_cost(&cost);
	return (struct pghot_hint_sums) {
		.at		= ktime_get_ns(),
		.samples	= cost.samples,
		.useful		= cost.useful,
		.cost_ns	= cost.irq_ns + cost.drain_ns,
		.promoted	= global_node_page_state_pages(PGPROMOTE_SUCCESS),
		.pauses		= pghot_hint_times_paused(),
	};
}

/* The controller's state when the source or auto is switched on. */
static void pghot_hint_reset_rate(void)
{
	lockdep_assert_held(&pghot_hint_lock);

	WRITE_ONCE(pghot_hint_share,
		   pghot_hint_auto ? READ_ONCE(pghot_hint_budget) : PGHOT_HINT_MAX_SHARE);
	pghot_sampling_init(&pghot_hint_rate, pghot_hint_config.period);
	pghot_hint_last = pghot_hint_sum_up();
}

/* Have the unit sample. Returns 0 or a negative error number. */
int pghot_hint_start(void)
{
	int err = -ENODEV;

	guard(mutex)(&pghot_hint_lock);
	pghot_hint_reset_rate();
	if (pghot_hint_unit)
		err = pghot_hint_unit->start(&pghot_hint_config);
	pghot_hint_sampling = !err;
	return err;
}

/* No call of pghot_hint() is under way when it returns. */
void pghot_hint_stop(void)
{
	guard(mutex)(&pghot_hint_lock);
	pghot_hint_unit->stop();
	pghot_hint_sampling = false;
}

/*
 * Set units going on CPUs on which they paused. From the thread, which must not wait
 * for CPU hotplug: that waits for who stops the thread.
 */
void pghot_hint_resume(struct cpumask *paused)
{
	unsigned int cpu;

	if (cpumask_empty(paused) || !cpus_read_trylock())
		return;
	scoped_guard(mutex, &pghot_hint_lock)
		for_each_cpu(cpu, paused)
			if (cpumask_test_and_clear_cpu(cpu, paused) && pghot_hint_sampling)
				pghot_hint_unit->resume(cpu);
	cpus_read_unlock();
}

/**
 * pghot_register_hint_unit - there is a unit that samples memory accesses
 * @unit: the unit; must stay for good, as there is no way to take it back.
 *
 * Of several units, the one with the highest rank is used.
 *
 * Context: process, may sleep.
 * Return: 0, -EINVAL if @unit is incomplete, or -EBUSY if another one is being
 *	   used.
 */
int pghot_register_hint_unit(const struct pghot_hint_unit *unit)
{
	if (!unit->name || !unit->start || !unit->stop || !unit->configure ||
	    !unit->resume || !unit->min_period || unit->min_period > unit->max_period)
		return -EINVAL;

	guard(mutex)(&pghot_hint_lock);
	if (pghot_hint_sampling)
		return -EBUSY;
	if (pghot_hint_unit && pghot_hint_unit->rank >= unit->rank)
		return 0;

	WRITE_ONCE(pghot_hint_unit, unit);
	pghot_hint_config.period = clamp(pghot_hint_config.period,
					 unit->min_period, unit->max_period);
	pghot_hint_config.l3miss_only = unit->caps & PGHOT_HINT_CAP_L3MISS;
	return 0;
}

/* ===== Controller ===== */

static void pghot_hint_step(const struct pghot_hint_sums *now)
{
	const struct pghot_hint_sums *last = &pghot_hint_last;
	struct pghot_sampling_tick tick = {
		.ns		= now->at - last->at,
		.nr_cpus	= num_online_cpus(),
		.samples	= now->samples - last->samples,
		.useful		= now->useful - last->useful,
		.cost_ns	= now->cost_ns - last->cost_ns,
		.promoted	= now->promoted - last->promoted,
		.stopped	= now->pauses - last->pauses,
	};
	struct pghot_hint_config config = pghot_hint_config;

	config.period = pghot_sampling_step(&pghot_hint_rate, &tick,
					    READ_ONCE(pghot_hint_budget),
					    pghot_hint_unit->min_period,
					    pghot_hint_unit->max_period);
	/* If that fails, the controller goes on from what there is. */
	if (config.period != pghot_hint_config.period && pghot_hint_configure(&config))
		pghot_hint_rate.period = pghot_hint_config.period;
	pghot_hint_last = *now;
}

/* Have the controller look at what came, if a tick is over. */
void pghot_hint_tick(void)
{
	struct pghot_hint_sums now;

	/* Only this thread writes it while the source is enabled, but for auto. */
	if (ktime_get_ns() - READ_ONCE(pghot_hint_last.at) <
	    PGHOT_SAMPLING_TICK_MS * NSEC_PER_MSEC)
		return;
	if (!cpus_read_trylock())
		return;
	scoped_guard(mutex, &pghot_hint_lock) {
		now = pghot_hint_sum_up();
		if (pghot_hint_sampling && pghot_hint_auto)
			pghot_hint_step(&now);
		else
			pghot_hint_last = now;
	}
	cpus_read_unlock();
}

/*
 * How long the thread may sleep. The controller has work every tick while samples come,
 * whether they are of use or not, and every second while the period may be too long
 * for the programs that run. Else nothing happens before the next sample: @any.
 */
long pghot_hint_patience(bool *any)
{
	struct pghot_hint_cost cost;

	guard(mutex)(&pghot_hint_lock);
	*any = false;
	if (!pghot_hint_auto)
		return MAX_SCHEDULE_TIMEOUT;

	pghot_hint_get_cost(&cost);
	if (cost.samples != pghot_hint_last.samples)
		return msecs_to_jiffies(PGHOT_SAMPLING_TICK_MS);
	if (pghot_hint_config.period > pghot_hint_unit->min_period)
		return HZ;
	*any = true;
	return MAX_SCHEDULE_TIMEOUT;
}

/* ===== Settings ===== */

/*
 * Set the period. Returns 0, -ENODEV if there is no unit, -EINVAL if it is not a
 * multiple of PGHOT_HINT_PERIOD_STEP, -ERANGE, or what the unit returned.
 */
int pghot_hint_set_period(unsigned int period)
{
	struct pghot_hint_config config;
	int err;

	guard(cpus_read_lock)();
	guard(mutex)(&pghot_hint_lock);
	if (!pghot_hint_unit)
		return -ENODEV;
	if (period < pghot_hint_unit->min_period || period > pghot_hint_unit->max_period)
		return -ERANGE;
	if (period % PGHOT_HINT_PERIOD_STEP)
		return -EINVAL;
	config = pghot_hint_config;
	config.period = period;
	err = pghot_hint_configure(&config);
	if (!err) {
		pghot_hint_auto = false;
		pghot_hint_reset_rate();
	}
	return err;
}

/* Let the controller find the period. */
int pghot_hint_set_auto(void)
{
	guard(mutex)(&pghot_hint_lock);
	if (!pghot_hint_unit)
		return -ENODEV;
	pghot_hint_auto = true;
	pghot_hint_reset_rate();
	pghot_hint_nudge();
	return 0;
}

bool pghot_hint_is_auto(void)
{
	guard(mutex)(&pghot_hint_lock);
	return pghot_hint_auto;
}

unsigned int pghot_hint_get_budget(void)
{
	return READ_ONCE(pghot_hint_budget);
}

void pghot_hint_set_budget(unsigned int permille)
{
	guard(mutex)(&pghot_hint_lock);
	WRITE_ONCE(pghot_hint_budget, permille);
	if (pghot_hint_auto)
		WRITE_ONCE(pghot_hint_share, permille);
}

/* Report loads only that took more than @latency cycles; 0: all accesses. */
int pghot_hint_set_latency(unsigned int latency)
{
	struct pghot_hint_config config;

	guard(cpus_read_lock)();
	guard(mutex)(&pghot_hint_lock);
	if (!pghot_hint_unit)
		return -ENODEV;
	if (latency && !(pghot_hint_unit->caps & PGHOT_HINT_CAP_LATENCY))
		return -EOPNOTSUPP;
	config = pghot_hint_config;
	config.latency = latency;
	return pghot_hint_configure(&config);
}

int pghot_hint_set_l3miss(bool l3miss_only)
{
	struct pghot_hint_config config;

	guard(cpus_read_lock)();
	guard(mutex)(&pghot_hint_lock);
	if (!pghot_hint_unit)
		return -ENODEV;
	if (l3miss_only && !(pghot_hint_unit->caps & PGHOT_HINT_CAP_L3MISS))
		return -EOPNOTSUPP;
	config = pghot_hint_config;
	config.l3miss_only = l3miss_only;
	return pghot_hint_configure(&config);
}
