// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the controller of the sampling rate, against simulated programs.
 */
#include <kunit/test.h>

#include "../sampling.h"
#include "random.h"

#define TICK_NS		(PGHOT_SAMPLING_TICK_MS * NSEC_PER_MSEC)
#define TICKS_PER_SEC	(MSEC_PER_SEC / PGHOT_SAMPLING_TICK_MS)
#define NR_CPUS_SIM	4
#define BUDGET		5
#define MIN_PERIOD	5008
#define MAX_PERIOD	((1 << 27) - 16)

/* Pages that can be promoted in a tick. */
#define ROOM_IN_TICK	1024
/* Pages that are found in the page tables around one sample. */
#define FOUND_AROUND	128

/* A program, the machine, and what a unit of it does. */
struct sim {
	u64			ops;		/* of all CPUs, in a second, that count */
	unsigned int		hot;		/* pages */
	unsigned int		slow;		/* of these, in lower-tier memory */
	bool			stuck;		/* nothing can be promoted */
	u64			cost_ns;	/* of a sample */
	struct rnd_state	rnd;
	struct pghot_sampling	s;
	struct pghot_guard	guard;		/* as if there was one for all CPUs */
	u64			now;
	u64			spent;
	unsigned int		changes;	/* from dense to sparse or back */
};

static void sim_init(struct sim *sim, unsigned int seed)
{
	*sim = (struct sim) {
		.ops = NSEC_PER_SEC, .hot = 16384, .slow = 16384, .cost_ns = 4000,
	};
	prandom_seed_state(&sim->rnd, seed);
	pghot_sampling_init(&sim->s, 65536);
}

/* Samples of a tick until the guard stops the unit, which a tick sets going again. */
static u64 sim_samples(struct sim *sim, unsigned int *stopped)
{
	u64 nr = div_u64(sim->ops / TICKS_PER_SEC, sim->s.period), i, step;

	/* Up to a fourth more or less, by chance. */
	nr = div_u64(nr * (768 + pghot_random(&sim->rnd, 512)), 1024);
	if (!nr)
		nr = div_u64(sim->ops / TICKS_PER_SEC,
			     1 + pghot_random(&sim->rnd, 2 * sim->s.period)) > 0;
	for (i = 0; i < nr; i++) {
		step = div64_u64(TICK_NS, nr);
		/* Time of all CPUs together. */
		if (!pghot_guard_take(&sim->guard, sim->now + i * step,
				      sim->cost_ns / NR_CPUS_SIM, BUDGET)) {
			*stopped = NR_CPUS_SIM;
			return i + 1;
		}
	}
	return nr;
}

static struct pghot_sampling_tick sim_tick(struct sim *sim)
{
	struct pghot_sampling_tick t = { .ns = TICK_NS, .nr_cpus = NR_CPUS_SIM };
	bool dense = sim->s.dense;

	t.samples = sim_samples(sim, &t.stopped);
	if (sim->hot)
		t.useful = div_u64(t.samples * sim->slow + pghot_random(&sim->rnd, sim->hot),
				   sim->hot);
	t.useful = min(t.useful, t.samples);
	if (!sim->stuck)
		t.promoted = min3(t.useful * FOUND_AROUND, (u64)sim->slow,
				  (u64)ROOM_IN_TICK);
	t.cost_ns = t.samples * sim->cost_ns;
	sim->slow -= t.promoted;
	sim->spent += t.cost_ns;
	sim->now += TICK_NS;
	pghot_sampling_step(&sim->s, &t, BUDGET, MIN_PERIOD, MAX_PERIOD);
	sim->changes += sim->s.dense != dense;
	return t;
}

static void sim_run(struct sim *sim, unsigned int seconds)
{
	unsigned int i;

	for (i = 0; i < seconds * TICKS_PER_SEC; i++)
		sim_tick(sim);
}

/* Time that may be spent in @ns, and what the guard lets pass that was saved. */
static u64 allowed(u64 ns)
{
	return div_u64((ns + PGHOT_GUARD_SAVED_NS) * BUDGET * NR_CPUS_SIM, 1000);
}

/* All is in slow memory: it is found and promoted, and then it is quiet. */
static void sampling_step(struct kunit *test)
{
	unsigned int seed;
	struct sim *sim = kunit_kzalloc(test, sizeof(*sim), GFP_KERNEL);
	u64 before;

	KUNIT_ASSERT_NOT_NULL(test, sim);
	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		sim_init(sim, seed);
		sim_run(sim, 6);
		KUNIT_EXPECT_LE_MSG(test, sim->slow * 100, sim->hot, "seed %u", seed);
		sim_run(sim, 4);
		KUNIT_EXPECT_FALSE_MSG(test, sim->s.dense, "seed %u", seed);

		before = sim->spent;
		sim_run(sim, 100);
		/* Twice the floor: less than 0.1 % of a CPU. */
		KUNIT_EXPECT_LE_MSG(test, sim->spent - before,
				    100 * 2 * PGHOT_SAMPLING_FLOOR * sim->cost_ns,
				    "seed %u", seed);
		KUNIT_EXPECT_LE_MSG(test, sim->changes, 1, "seed %u", seed);
	}
}

/* What is hot is another set all of a sudden: dense and at full rate within 2 s. */
static void sampling_moving(struct kunit *test)
{
	unsigned int seed, i;
	struct sim *sim = kunit_kzalloc(test, sizeof(*sim), GFP_KERNEL);
	struct pghot_sampling_tick t;
	u64 full;

	KUNIT_ASSERT_NOT_NULL(test, sim);
	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		sim_init(sim, seed);
		sim_run(sim, 60);
		for (i = 0; i < 4; i++) {
			sim->slow = sim->hot;
			sim->stuck = true;
			sim_run(sim, 1);
			KUNIT_EXPECT_TRUE_MSG(test, sim->s.dense, "seed %u, move %u", seed, i);
			sim_run(sim, 1);
			sim->stuck = false;
			t = sim_tick(sim);
			full = pghot_sampling_max_rate(&sim->s, BUDGET, NR_CPUS_SIM) /
			       TICKS_PER_SEC;
			KUNIT_EXPECT_GE_MSG(test, t.samples, full / 4, "seed %u, move %u", seed, i);
			sim_run(sim, 28);
			KUNIT_EXPECT_LE_MSG(test, sim->slow * 100, sim->hot,
					    "seed %u, move %u", seed, i);
			KUNIT_EXPECT_FALSE_MSG(test, sim->s.dense, "seed %u, move %u", seed, i);
		}
	}
}

/* No slow memory is in use: sparse after a tick, and for good. */
static void sampling_none(struct kunit *test)
{
	struct sim *sim = kunit_kzalloc(test, sizeof(*sim), GFP_KERNEL);
	unsigned int seed;

	KUNIT_ASSERT_NOT_NULL(test, sim);
	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		sim_init(sim, seed);
		sim->hot = 0;
		sim->slow = 0;
		sim_run(sim, 1);
		KUNIT_EXPECT_FALSE_MSG(test, sim->s.dense, "seed %u", seed);
		sim_run(sim, 100);
		KUNIT_EXPECT_FALSE_MSG(test, sim->s.dense, "seed %u", seed);
		KUNIT_EXPECT_LE_MSG(test, sim->changes, 1, "seed %u", seed);
	}
}

/* A share between the two limits leaves it as it is, whatever the noise. */
static void sampling_noise(struct kunit *test)
{
	struct sim *sim = kunit_kzalloc(test, sizeof(*sim), GFP_KERNEL);
	unsigned int seed, i;

	KUNIT_ASSERT_NOT_NULL(test, sim);
	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		sim_init(sim, seed);
		for (i = 0; i < 400; i++) {
			/* Around 1/64, to which promotion changes nothing. */
			sim->slow = sim->hot / 64 - sim->hot / 512 +
				    pghot_random(&sim->rnd, sim->hot / 256);
			sim_tick(sim);
		}
		KUNIT_EXPECT_LE_MSG(test, sim->changes, 8, "seed %u", seed);
	}
}

/* All that is hot is in slow memory and has to stay there: tried less and less. */
static void sampling_no_room(struct kunit *test)
{
	struct sim *sim = kunit_kzalloc(test, sizeof(*sim), GFP_KERNEL);
	unsigned int seed, i, dense;

	KUNIT_ASSERT_NOT_NULL(test, sim);
	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		sim_init(sim, seed);
		sim->stuck = true;
		dense = 0;
		for (i = 0; i < 600 * TICKS_PER_SEC; i++) {
			sim_tick(sim);
			dense += sim->s.dense;
		}
		KUNIT_EXPECT_LE_MSG(test, dense, i / 10, "seed %u", seed);
		KUNIT_EXPECT_GT_MSG(test, sim->changes, 8, "seed %u", seed);

		/* There is room again: found out within the longest pause. */
		sim->stuck = false;
		for (i = 0; sim->slow * 100 > sim->hot && i < 80 * TICKS_PER_SEC; i++)
			sim_tick(sim);
		KUNIT_EXPECT_LE_MSG(test, i * TICK_NS, PGHOT_MAX_PAUSE_NS + 8 * NSEC_PER_SEC,
				    "seed %u", seed);
		/* And once it is known that it helps, there is no pause any more. */
		sim_run(sim, 3);
		KUNIT_EXPECT_FALSE_MSG(test, sim->s.dense, "seed %u", seed);
		sim->slow = sim->hot;
		sim->stuck = true;
		sim_run(sim, 1);
		KUNIT_EXPECT_TRUE_MSG(test, sim->s.dense, "seed %u", seed);
	}
}

/* The period is much too short: after a while the guard is not needed any more. */
static void sampling_storm(struct kunit *test)
{
	struct sim *sim = kunit_kzalloc(test, sizeof(*sim), GFP_KERNEL);
	unsigned int seed, i, stopped;

	KUNIT_ASSERT_NOT_NULL(test, sim);
	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		sim_init(sim, seed);
		/* Nobody does anything: the period gets as short as can be. */
		sim->ops = 0;
		sim_run(sim, 60);
		KUNIT_EXPECT_EQ_MSG(test, sim->s.period, MIN_PERIOD, "seed %u", seed);
		sim->ops = 100ULL * NSEC_PER_SEC;
		stopped = 0;
		for (i = 0; i < 56; i++) {
			/* There is always more to be found. */
			sim->slow = sim->hot;
			stopped += sim_tick(sim).stopped && i >= 16;
		}
		KUNIT_EXPECT_LE_MSG(test, stopped, 4, "seed %u", seed);
	}
}

/* Nothing happens for minutes, then a program starts: it finds no sparse time. */
static void sampling_after_sleep(struct kunit *test)
{
	struct sim *sim = kunit_kzalloc(test, sizeof(*sim), GFP_KERNEL);
	struct pghot_sampling_tick t;
	unsigned int seed;

	KUNIT_ASSERT_NOT_NULL(test, sim);
	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		sim_init(sim, seed);
		t = (struct pghot_sampling_tick) {
			.ns = 600 * NSEC_PER_SEC, .nr_cpus = NR_CPUS_SIM,
			.samples = 1 + pghot_random(&sim->rnd, 100),
		};
		t.useful = t.samples;
		pghot_sampling_step(&sim->s, &t, BUDGET, MIN_PERIOD, MAX_PERIOD);
		KUNIT_EXPECT_TRUE_MSG(test, sim->s.dense, "seed %u", seed);
		sim_run(sim, 7);
		KUNIT_EXPECT_LE_MSG(test, sim->slow * 100, sim->hot, "seed %u", seed);
	}
}

/* Whatever the program does, no second costs more than the budget. */
static void sampling_budget(struct kunit *test)
{
	struct sim *sim = kunit_kzalloc(test, sizeof(*sim), GFP_KERNEL);
	unsigned int seed, i;
	u64 before;

	KUNIT_ASSERT_NOT_NULL(test, sim);
	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		sim_init(sim, seed);
		sim->stuck = true;
		for (i = 0; i < 100; i++) {
			/* From idle to 256 CPUs' worth of operations, in any order. */
			sim->ops = pghot_random(&sim->rnd, 4) ?
				   1ULL << pghot_random(&sim->rnd, 41) : 0;
			sim->cost_ns = 1000 << pghot_random(&sim->rnd, 5);
			sim->slow = pghot_random(&sim->rnd, sim->hot + 1);
			before = sim->spent;
			sim_run(sim, 1);
			KUNIT_ASSERT_LE_MSG(test, sim->spent - before,
					    allowed(NSEC_PER_SEC) + TICKS_PER_SEC * sim->cost_ns,
					    "seed %u, second %u", seed, i);
		}
	}
}

/* Operations get more and more, or fewer and fewer: the rate stays what is wanted. */
static void sampling_ramp(struct kunit *test)
{
	struct sim *sim = kunit_kzalloc(test, sizeof(*sim), GFP_KERNEL);
	unsigned int seed, i;
	u64 want, came;

	KUNIT_ASSERT_NOT_NULL(test, sim);
	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		sim_init(sim, seed);
		sim->ops = SZ_1G;
		came = 0;
		for (i = 0; i < 800; i++) {
			sim->slow = sim->hot;
			/* Twice as many after 7 ticks, later half as many. */
			sim->ops = div_u64(sim->ops * (i % 200 < 100 ? 1100 : 910), 1000);
			came += sim_tick(sim).samples;
			if (i % 40 != 39)
				continue;
			want = 40 * pghot_sampling_max_rate(&sim->s, BUDGET, NR_CPUS_SIM) /
			       TICKS_PER_SEC;
			KUNIT_EXPECT_GE_MSG(test, came, want / 2, "seed %u, tick %u", seed, i);
			KUNIT_EXPECT_LE_MSG(test, came, want * 3 / 2, "seed %u, tick %u", seed, i);
			came = 0;
		}
	}
}

/* Periods are what the unit takes, whatever comes in. */
static void sampling_periods(struct kunit *test)
{
	struct pghot_sampling_tick t;
	struct pghot_sampling s;
	unsigned int seed, i, period;
	struct rnd_state rnd;

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		pghot_sampling_init(&s, MIN_PERIOD);
		for (i = 0; i < 1000; i++) {
			t = (struct pghot_sampling_tick) {
				.ns = 1ULL << pghot_random(&rnd, 36),
				.nr_cpus = 1 + pghot_random(&rnd, 8192),
				.samples = pghot_random64(&rnd) >> (32 + pghot_random(&rnd, 32)),
				.cost_ns = pghot_random64(&rnd) >> (16 + pghot_random(&rnd, 48)),
				.promoted = pghot_random(&rnd, 2) * pghot_random(&rnd, SZ_1M),
				.stopped = pghot_random(&rnd, 2),
			};
			t.useful = pghot_random(&rnd, t.samples + 1);
			period = pghot_sampling_step(&s, &t, pghot_random(&rnd, 101),
						     MIN_PERIOD, MAX_PERIOD);
			KUNIT_ASSERT_GE_MSG(test, period, MIN_PERIOD, "seed %u, step %u", seed, i);
			KUNIT_ASSERT_LE_MSG(test, period, MAX_PERIOD, "seed %u, step %u", seed, i);
			KUNIT_ASSERT_EQ_MSG(test, period % 16, 0, "seed %u, step %u", seed, i);
			KUNIT_ASSERT_LE_MSG(test, s.share, PGHOT_SHARE_ONE,
					    "seed %u, step %u", seed, i);
		}
	}
}

/* A CPU spends no more than its share and what it saved up, whatever interrupts take. */
static void sampling_guard(struct kunit *test)
{
	unsigned int seed, i, budget;
	struct pghot_guard g;
	struct rnd_state rnd;
	u64 now, start, spent, ns, last;

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		budget = 1 + pghot_random(&rnd, 100);
		start = pghot_random64(&rnd) >> 2;
		now = start;
		g = (struct pghot_guard) { .last = now };
		spent = 0;
		last = 0;
		for (i = 0; i < 10000; i++) {
			now += pghot_random(&rnd, 1 << pghot_random(&rnd, 25));
			ns = pghot_random(&rnd, 20000);
			spent += ns;
			last = ns;
			if (!pghot_guard_take(&g, now, ns, budget))
				/* Not before there is time again. */
				now += div_u64(-min(g.tokens, 0LL), budget) + 1;
		}
		KUNIT_EXPECT_LE_MSG(test, spent - last,
				    div_u64((now - start + PGHOT_GUARD_SAVED_NS) * budget,
					    1000) + 20000,
				    "seed %u", seed);
	}
}

static struct kunit_case sampling_cases[] = {
	KUNIT_CASE(sampling_step),
	KUNIT_CASE(sampling_moving),
	KUNIT_CASE(sampling_none),
	KUNIT_CASE(sampling_noise),
	KUNIT_CASE(sampling_no_room),
	KUNIT_CASE(sampling_storm),
	KUNIT_CASE(sampling_after_sleep),
	KUNIT_CASE(sampling_budget),
	KUNIT_CASE(sampling_ramp),
	KUNIT_CASE(sampling_periods),
	KUNIT_CASE(sampling_guard),
	{}
};

static struct kunit_suite sampling_suite = {
	.name = "pghot_sampling",
	.test_cases = sampling_cases,
};

kunit_test_suite(sampling_suite);
