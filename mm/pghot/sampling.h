/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How often to sample: the controller behind period = auto.
 *
 * A period counts operations, and what follows from it depends on the program: how
 * many operations it does in a second, and how many of them the unit discards. So
 * this controls the rate of samples, which is what costs, and takes the period for a
 * lever whose length is measured.
 *
 * Time passes in ticks of about PGHOT_SAMPLING_TICK_MS. For each there is known how
 * many samples came, how many of these were of use (accesses to lower-tier memory
 * that may be promoted), how long it took to handle them, and how many pages were
 * promoted.
 *
 * Budget
 *
 *     At most budget/1000 of the time of all CPUs goes into samples. The rate aims at
 *     three quarters of that, since samples do not come evenly:
 *
 *         max_rate = 3/4 * budget / 1000 * CPUs / cost of a sample
 *
 *     The cost is measured, and smoothed. A guard in the interrupt sees to it that a
 *     period that turns out too short costs no more either, see pghot_guard_take().
 *
 * Rate
 *
 *     dense	max_rate: while samples show lower-tier memory in use, and it helps
 *     sparse	half as much each tick, down to PGHOT_SAMPLING_FLOOR a second
 *
 *     From dense to sparse if less than 1/128 of the samples were of use: what is
 *     hot has been found. Or if nothing was promoted for two seconds: it does not
 *     help, for there may be no room. Back to dense if 1/32 were of use; if it did not
 *     help the last time, after a pause only, which doubles from 4 s to 64 s.
 *
 * Period
 *
 *     rate that came / rate that is wanted, times the last period. Longer by a factor
 *     of 16 at most in a tick, shorter by 2: too many samples are worse than too few.
 *     Where the guard had to stop a CPU, the samples that came do not tell how many
 *     there would have been: twice as long, and not shorter for two seconds.
 *
 * Example: 4 CPUs, a budget of 5, a sample costs 3 us. max_rate is 5000 a second. The
 * hot set of a program, 16384 pages, is in slow memory. 1250 samples in the first tick
 * show 128 areas of 2 MiB, in which page tables show the rest. Promotion takes its time;
 * meanwhile samples go on. When 16256 pages are in DRAM, less than 1/128 of the samples
 * are of slow memory. 6 ticks later there are 78 a second, which take 0.006 percent of
 * the CPUs' time. If the program moves on to other pages, nearly all samples are of
 * use at once; a tick has about 16 of these, and the next one is dense again.
 */
#ifndef _MM_PGHOT_SAMPLING_H
#define _MM_PGHOT_SAMPLING_H

#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

#define PGHOT_SAMPLING_TICK_MS	250

/* A tick that took longer had an end only when a sample came: so much of it counts. */
#define PGHOT_SAMPLING_MAX_NS	(2 * PGHOT_SAMPLING_TICK_MS * NSEC_PER_MSEC)

/* Samples a second of all CPUs together, when there is nothing to be found. */
#define PGHOT_SAMPLING_FLOOR	64

/* The share of useful samples, in 1/1024, from which on it is dense or sparse. */
#define PGHOT_SHARE_ONE		1024
#define PGHOT_SHARE_DENSE	(PGHOT_SHARE_ONE / 32)
#define PGHOT_SHARE_SPARSE	(PGHOT_SHARE_ONE / 128)

/* How long it may be dense without any help, and the pauses after that. */
#define PGHOT_PATIENCE_NS	(2 * NSEC_PER_SEC)
#define PGHOT_MIN_PAUSE_NS	(4 * NSEC_PER_SEC)
#define PGHOT_MAX_PAUSE_NS	(64 * NSEC_PER_SEC)

/* What a sample is taken to cost before it was measured, and the least and most. */
#define PGHOT_COST_FIRST_NS	5000
#define PGHOT_COST_MIN_NS	100
#define PGHOT_COST_MAX_NS	NSEC_PER_MSEC

/* So few samples tell nothing about their cost. */
#define PGHOT_COST_SAMPLES	16

/* The period does not get shorter so soon after it was too short. */
#define PGHOT_HOLD_NS		(2 * NSEC_PER_SEC)

/**
 * struct pghot_sampling_tick - what happened since the last tick
 * @ns: how long that was; at most PGHOT_SAMPLING_MAX_NS of it count.
 * @nr_cpus: CPUs that were sampled.
 * @samples: samples that came.
 * @useful: those of them that were reported.
 * @cost_ns: time that it took to handle them.
 * @promoted: pages that were promoted.
 * @stopped: CPUs that the guard stopped.
 */
struct pghot_sampling_tick {
	u64		ns;
	unsigned int	nr_cpus;
	u64		samples;
	u64		useful;
	u64		cost_ns;
	u64		promoted;
	unsigned int	stopped;
};

/**
 * struct pghot_sampling - state of the controller
 * @period: operations between samples.
 * @dense: or else sparse.
 * @cost_ns: of a sample, smoothed.
 * @share: of useful samples, in 1/PGHOT_SHARE_ONE, smoothed.
 * @rate: wanted, in samples a second, all CPUs together.
 * @vain_ns: time without any promotion, while it was dense.
 * @sparse_ns: time since it was dense.
 * @pause_ns: time that it stays sparse at least.
 * @hold_ns: time that the period does not get shorter.
 */
struct pghot_sampling {
	unsigned int	period;
	bool		dense;
	u64		cost_ns;
	unsigned int	share;
	u64		rate;
	u64		vain_ns;
	u64		sparse_ns;
	u64		pause_ns;
	u64		hold_ns;
};

static inline void pghot_sampling_init(struct pghot_sampling *s, unsigned int period)
{
	*s = (struct pghot_sampling) {
		.period		= period,
		.dense		= true,
		.cost_ns	= PGHOT_COST_FIRST_NS,
		.share		= PGHOT_SHARE_ONE,
	};
}

/* Samples a second to aim at, with @budget in 1/1000 of the time of all CPUs. */
static inline u64 pghot_sampling_max_rate(const struct pghot_sampling *s,
					  unsigned int budget, unsigned int nr_cpus)
{
	return div64_u64((u64)budget * nr_cpus * (NSEC_PER_SEC / 1000) * 3 / 4, s->cost_ns);
}

static inline void pghot_sampling_learn(struct pghot_sampling *s,
					const struct pghot_sampling_tick *t)
{
	u64 cost;

	if (t->samples >= PGHOT_COST_SAMPLES) {
		cost = clamp_t(u64, div64_u64(t->cost_ns, t->samples),
			       PGHOT_COST_MIN_NS, PGHOT_COST_MAX_NS);
		s->cost_ns = (3 * s->cost_ns + cost) / 4;
	}
	/* 16 samples are worth as much as all that was before. */
	if (t->samples)
		s->share = div64_u64(16 * s->share +
				     min(t->useful, t->samples) * PGHOT_SHARE_ONE,
				     t->samples + 16);
}

static inline void pghot_sampling_decide(struct pghot_sampling *s,
					 const struct pghot_sampling_tick *t)
{
	/* A page here and there is no success, but the usual noise. */
	bool helps = t->promoted && t->promoted >= t->samples / 256;

	if (helps)
		s->pause_ns = 0;

	if (s->dense) {
		/* Without samples there was nothing to be of help with. */
		s->vain_ns = helps || !t->samples ? 0 : s->vain_ns + t->ns;
		if (s->vain_ns >= PGHOT_PATIENCE_NS)
			s->pause_ns = clamp_t(u64, 2 * s->pause_ns, PGHOT_MIN_PAUSE_NS,
					      PGHOT_MAX_PAUSE_NS);
		else if (s->share >= PGHOT_SHARE_SPARSE)
			return;
		s->dense = false;
		s->sparse_ns = 0;
	} else {
		s->sparse_ns += t->ns;
		if (s->share < PGHOT_SHARE_DENSE || s->sparse_ns < s->pause_ns)
			return;
		s->dense = true;
		s->vain_ns = 0;
	}
}

/* The period with which @rate samples a second had come instead of those of @t. */
static inline u64 pghot_sampling_scale(u64 period, const struct pghot_sampling_tick *t,
				       u64 rate)
{
	u64 wanted = div64_u64(rate * t->ns, NSEC_PER_SEC), scaled, noise;

	/* Too little time to tell. */
	if (!wanted)
		return period;
	noise = wanted / (wanted < 64 ? 2 : 16);
	if (t->samples + noise >= wanted && t->samples <= wanted + noise)
		return period;
	scaled = div64_u64(period * t->samples, wanted);
	return clamp(scaled, period / 2, period * 16);
}

static inline u64 pghot_sampling_period(struct pghot_sampling *s,
					const struct pghot_sampling_tick *t)
{
	u64 period = s->period, scaled = pghot_sampling_scale(period, t, s->rate);

	if (t->stopped) {
		s->hold_ns = PGHOT_HOLD_NS;
		return max(scaled, 2 * period);
	}
	s->hold_ns -= min(s->hold_ns, t->ns);
	return s->hold_ns ? max(scaled, period) : scaled;
}

/**
 * pghot_sampling_step - a tick is over
 * @s: the state.
 * @tick: what happened in it.
 * @budget: time that may be spent, in 1/1000 of the time of all CPUs.
 * @min: shortest period of the unit.
 * @max: longest period.
 *
 * Return: the period for the next tick, a multiple of 16 if @min and @max are.
 */
static inline unsigned int
pghot_sampling_step(struct pghot_sampling *s, const struct pghot_sampling_tick *tick,
		    unsigned int budget, unsigned int min, unsigned int max)
{
	struct pghot_sampling_tick t = *tick;
	u64 max_rate, period;

	t.ns = min_t(u64, t.ns, PGHOT_SAMPLING_MAX_NS);
	pghot_sampling_learn(s, &t);
	pghot_sampling_decide(s, &t);

	max_rate = pghot_sampling_max_rate(s, budget, t.nr_cpus);
	s->rate = s->dense ? max_rate :
			     clamp_t(u64, s->rate / 2, PGHOT_SAMPLING_FLOOR, max_rate);
	s->rate = min(s->rate, max_rate);

	/* No rate at all: as rarely as can be. */
	period = s->rate ? pghot_sampling_period(s, &t) : max;
	s->period = clamp_t(u64, round_up(period, 16), min, max);
	return s->period;
}

/* ===== Guard ===== */

/* Time of a CPU is saved up for so long. */
#define PGHOT_GUARD_SAVED_NS	(100 * NSEC_PER_MSEC)

/**
 * struct pghot_guard - what a CPU may still spend on samples
 * @tokens: in ns of its time, times 1000; may be negative.
 * @last: when that was, in ns.
 */
struct pghot_guard {
	s64	tokens;
	u64	last;
};

/*
 * An interrupt took @ns, and ended at @now. Returns whether there is time for another
 * one, at a budget of @budget/1000 of the CPU's time.
 */
static inline bool pghot_guard_take(struct pghot_guard *g, u64 now, u64 ns,
				    unsigned int budget)
{
	u64 dt = now > g->last ? min_t(u64, now - g->last, PGHOT_GUARD_SAVED_NS) : 0;

	g->tokens = min_t(s64, g->tokens + (s64)(dt * budget),
			  (s64)(PGHOT_GUARD_SAVED_NS * budget));
	g->last = now;
	g->tokens -= (s64)(min_t(u64, ns, NSEC_PER_SEC) * 1000);
	return g->tokens > 0;
}

#endif /* _MM_PGHOT_SAMPLING_H */
