// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the feedback: promotion slows down while it pushes out what is hot.
 */
#include <kunit/test.h>

#include "../policy.h"
#include "random.h"

/* Few come back: the limit is the rate, whatever the limit and the promotion. */
static void feedback_lets_alone(struct kunit *test)
{
	unsigned long now, promoted = 0, demoted_hot = 0, nr;
	struct pghot_feedback f;
	unsigned int seed, i;
	struct rnd_state rnd;
	u64 limit;

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		now = pghot_random_start(&rnd);
		f = (struct pghot_feedback) {
			.since = now, .promoted = promoted, .demoted_hot = demoted_hot,
		};
		for (i = 0; i < 1000; i++) {
			limit = pghot_random_rate(&rnd);
			now += pghot_random(&rnd, 5 * HZ);
			nr = pghot_random(&rnd, 1 << pghot_random(&rnd, 24));
			promoted += nr;
			demoted_hot += nr / 4;
			/* The sums are cut in windows: what comes back comes first. */
			KUNIT_ASSERT_EQ_MSG(test,
					    pghot_feedback_rate(&f, now, 1, limit, promoted,
								demoted_hot),
					    limit, "seed %u, step %u", seed, i);
		}
	}
}

/* As many come back as go up: each window halves what is really promoted. */
static void feedback_halves(struct kunit *test)
{
	unsigned long now, promoted, demoted_hot, window = 3 * HZ, nr;
	unsigned int seed, i, throttle;
	struct pghot_feedback f;
	struct rnd_state rnd;
	u64 limit, was, is;

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		now = pghot_random_start(&rnd);
		limit = pghot_random_rate(&rnd);
		promoted = pghot_random64(&rnd);
		demoted_hot = pghot_random64(&rnd);
		f = (struct pghot_feedback) {
			.since = now, .promoted = promoted, .demoted_hot = demoted_hot,
		};
		for (i = 0; i < 20; i++) {
			throttle = f.throttle;
			/* No less than any throttle would leave. */
			was = limit >> (throttle + pghot_random(&rnd, 9 - throttle));
			nr = div_u64(was, PAGE_SIZE) * 3;
			promoted += nr;
			demoted_hot += nr / 4 + 1;
			now += window;
			is = pghot_feedback_rate(&f, now, window, limit, promoted, demoted_hot);
			KUNIT_ASSERT_LE(test, f.throttle, 8);
			KUNIT_ASSERT_EQ(test, is, limit >> f.throttle);
			KUNIT_ASSERT_GE(test, f.throttle, throttle);
			if (f.throttle < 8)
				KUNIT_ASSERT_LE_MSG(test, is, was / 2, "seed %u", seed);
		}
	}
}

/* Nothing happens before the window is over; then it is judged as a whole. */
static void feedback_waits_for_window(struct kunit *test)
{
	const unsigned long start = -10UL, window = 100;
	struct pghot_feedback f = { .since = start };
	unsigned long dt;

	for (dt = 0; dt < window; dt++)
		KUNIT_ASSERT_EQ(test, pghot_feedback_rate(&f, start + dt, window, SZ_16M,
							  dt, dt), SZ_16M);
	KUNIT_EXPECT_LT(test, pghot_feedback_rate(&f, start + window, window, SZ_16M,
						  window, window), SZ_16M);
	KUNIT_EXPECT_EQ(test, f.since, start + window);
	KUNIT_EXPECT_EQ(test, f.promoted, window);
	KUNIT_EXPECT_EQ(test, f.demoted_hot, window);
}

/* From the lowest rate to the limit: eight good windows, or as long without any. */
static void feedback_recovers(struct kunit *test)
{
	struct pghot_feedback f = { .throttle = 8 };
	unsigned int i;

	for (i = 1; i <= 8; i++)
		KUNIT_EXPECT_EQ(test, pghot_feedback_rate(&f, i * 100, 100, SZ_1G, i * 1000,
							  i * 250), SZ_1G >> (8 - i));
	f = (struct pghot_feedback) { .throttle = 8 };
	pghot_feedback_idle(&f, 599, 100);
	KUNIT_EXPECT_EQ(test, f.throttle, 3);
	pghot_feedback_idle(&f, 99, 100);
	KUNIT_EXPECT_EQ(test, f.throttle, 3);
	pghot_feedback_idle(&f, ULONG_MAX, 0);
	KUNIT_EXPECT_EQ(test, f.throttle, 0);
}

/* So little that no throttle would change it is not to blame for anything. */
static void feedback_ignores_little(struct kunit *test)
{
	struct pghot_feedback f = {};
	const unsigned long window = 3 * HZ;

	KUNIT_EXPECT_EQ(test, pghot_feedback_rate(&f, window, window, SZ_1G, 0, 1000), SZ_1G);
	KUNIT_EXPECT_EQ(test, pghot_feedback_rate(&f, 2 * window, window, SZ_1G, 1, 1001), SZ_1G);
	KUNIT_EXPECT_EQ(test, pghot_feedback_rate(&f, 3 * window, window, SZ_1G, 101, 1513), SZ_1G);
	/* A long window with cycles in it is one window, not many. */
	KUNIT_EXPECT_LT(test, pghot_feedback_rate(&f, 30 * window, window, SZ_1G,
						  1000000, 1000000), SZ_64M);
}

/*
 * A model of memory: DRAM is full, and each page that is promoted makes one leave,
 * which is hot in proportion to what is hot in DRAM. With more hot pages than DRAM
 * has, promotion all but ends; when they fit, all of them get there soon.
 */
static void feedback_in_model(struct kunit *test)
{
	const unsigned long dram = 100000, window = 3 * HZ;
	unsigned long hot = 150000, hot_in_dram = 50000, promoted = 0, demoted_hot = 0;
	unsigned long now = 0, nr, back, at_begin = 0, in_end = 0;
	struct pghot_feedback f = {};
	const u64 limit = SZ_64M;
	u64 rate = limit;
	unsigned int i;

	for (i = 0; i < 60; i++) {
		if (i == 40) {
			hot = 60000;
			hot_in_dram = min(hot_in_dram, 40000UL);
		}
		/* The machine moves 10000 pages in a window, if it may. */
		nr = min3(div_u64(rate * 3, PAGE_SIZE), 10000ULL, (u64)(hot - hot_in_dram));
		back = mult_frac(nr, hot_in_dram, dram);
		/* Reclaim knows hot from cold while there is something cold. */
		if (hot < dram)
			back /= 10;
		hot_in_dram = min(hot_in_dram + nr - back, dram);
		promoted += nr;
		demoted_hot += back;
		now += window;
		rate = pghot_feedback_rate(&f, now, window, limit, promoted, demoted_hot);
		if (i < 5)
			at_begin += nr;
		else if (i >= 35 && i < 40)
			in_end += nr;
	}
	KUNIT_EXPECT_LT(test, in_end, at_begin / 2);
	KUNIT_EXPECT_GT(test, in_end, 0);
	KUNIT_EXPECT_EQ(test, hot_in_dram, hot);
	KUNIT_EXPECT_EQ(test, rate, limit);
}

static struct kunit_case feedback_cases[] = {
	KUNIT_CASE(feedback_lets_alone),
	KUNIT_CASE(feedback_halves),
	KUNIT_CASE(feedback_waits_for_window),
	KUNIT_CASE(feedback_recovers),
	KUNIT_CASE(feedback_ignores_little),
	KUNIT_CASE(feedback_in_model),
	{}
};

static struct kunit_suite feedback_suite = {
	.name		= "pghot_feedback",
	.test_cases	= feedback_cases,
};

kunit_test_suite(feedback_suite);
