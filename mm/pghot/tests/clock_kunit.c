// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of what tells the epoch.
 */
#include <kunit/test.h>

#include "../record.h"
#include "random.h"

/* Epochs begin every len jiffies, also across the wrap of jiffies. */
static void epoch_counts_windows(struct kunit *test)
{
	unsigned int seed, step, off;
	struct pghot_clock clk;
	struct rnd_state rnd;
	unsigned long n;

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		for (step = 0; step < 1000; step++) {
			clk.len = 1 + pghot_random(&rnd, 600 * HZ);
			/* Half of them pass the end of jiffies soon. */
			clk.base = step % 2 ? pghot_random64(&rnd) :
					      -1UL - pghot_random(&rnd, 10 * clk.len);
			clk.epoch = prandom_u32_state(&rnd);
			n = pghot_random(&rnd, 1000);
			off = pghot_random(&rnd, clk.len);
			KUNIT_ASSERT_EQ_MSG(test,
					    pghot_clock_epoch(&clk, clk.base + n * clk.len + off),
					    clk.epoch + (unsigned int)n,
					    "seed %u, step %u", seed, step);
		}
	}
}

static void epoch_borders(struct kunit *test)
{
	const struct pghot_clock clk = { .base = -10UL, .len = 20, .epoch = UINT_MAX };

	KUNIT_EXPECT_EQ(test, pghot_clock_epoch(&clk, -10UL), UINT_MAX);
	KUNIT_EXPECT_EQ(test, pghot_clock_epoch(&clk, 9), UINT_MAX);
	/* Both the jiffies and the number of the epoch have wrapped. */
	KUNIT_EXPECT_EQ(test, pghot_clock_epoch(&clk, 10), 0);
	KUNIT_EXPECT_EQ(test, pghot_clock_epoch(&clk, 29), 0);
	KUNIT_EXPECT_EQ(test, pghot_clock_epoch(&clk, 30), 1);
}

/* A report may carry a time from before the window was changed. */
static void stamp_before_base(struct kunit *test)
{
	struct pghot_clock clk = { .len = 3 * HZ, .epoch = 42 };
	static const unsigned long bases[] = { 0, 1, 5, LONG_MAX, -1UL };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bases); i++) {
		clk.base = bases[i];
		KUNIT_EXPECT_EQ(test, pghot_clock_epoch(&clk, clk.base - 1), 42);
		KUNIT_EXPECT_EQ(test, pghot_clock_epoch(&clk, clk.base - 3 * HZ), 42);
		KUNIT_EXPECT_EQ(test, pghot_clock_epoch(&clk, clk.base - 1000000), 42);
	}
}

static void change_keeps_epoch(struct kunit *test)
{
	unsigned int seed, step, epoch;
	unsigned long now, len, rest;
	struct pghot_clock clk, old;
	struct rnd_state rnd;

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		now = -1UL - pghot_random(&rnd, 1000000);
		clk = (struct pghot_clock) { .base = now, .len = 3 * HZ };

		for (step = 0; step < 500; step++) {
			now += pghot_random(&rnd, 3 * clk.len);
			len = 1 + pghot_random(&rnd, 100 * HZ);
			old = clk;
			epoch = pghot_clock_epoch(&old, now);
			clk = pghot_clock_change(&old, now, len);

			/* No jump, and what has passed of the epoch counts. */
			rest = (now - old.base) % old.len;
			rest = rest < len ? len - rest : 1;
			KUNIT_ASSERT_EQ_MSG(test, pghot_clock_epoch(&clk, now), epoch,
					    "seed %u, step %u", seed, step);
			KUNIT_ASSERT_EQ(test, pghot_clock_epoch(&clk, now + rest - 1), epoch);
			KUNIT_ASSERT_EQ(test, pghot_clock_epoch(&clk, now + rest), epoch + 1);
			/* The unchanged clock is still right for who reads it. */
			KUNIT_ASSERT_EQ(test, pghot_clock_epoch(&old, now), epoch);
		}
	}
}

/* A window shorter than a jiffy is a jiffy, not a division by zero. */
static void change_to_nothing(struct kunit *test)
{
	const struct pghot_clock old = { .base = 100, .len = HZ, .epoch = 7 };
	struct pghot_clock clk = pghot_clock_change(&old, 100 + 2 * HZ, 0);

	KUNIT_EXPECT_EQ(test, clk.len, 1);
	KUNIT_EXPECT_EQ(test, pghot_clock_epoch(&clk, 100 + 2 * HZ), 9);
	KUNIT_EXPECT_EQ(test, pghot_clock_epoch(&clk, 100 + 2 * HZ + 5), 14);
}

/* Changes of the window neither heat nor cool what was just touched. */
static void change_keeps_heat(struct kunit *test)
{
	struct pghot_clock clk = { .base = 0, .len = 3 * HZ, .epoch = 126 };
	unsigned long now = 0;
	unsigned int i;
	u16 rec;

	rec = pghot_rec_touch(0, pghot_clock_epoch(&clk, now), 0, 8);
	for (i = 0; i < 20; i++) {
		now++;
		clk = pghot_clock_change(&clk, now, (1 + i % 3) * 10 * HZ);
		KUNIT_ASSERT_EQ(test, pghot_rec_heat_now(rec, pghot_clock_epoch(&clk, now)), 8);
	}
	KUNIT_EXPECT_EQ(test, pghot_rec_heat_now(rec, pghot_clock_epoch(&clk, now + clk.len)), 4);
}

/* Who sets the window all the time does not stop the time. */
static void change_lets_time_pass(struct kunit *test)
{
	struct pghot_clock clk = { .base = 0, .len = 3 * HZ };
	unsigned long now;

	for (now = 0; now < 30 * HZ; now += HZ / 10)
		clk = pghot_clock_change(&clk, now, now & 1 ? 3 * HZ : 3 * HZ + 1);
	KUNIT_EXPECT_GE(test, pghot_clock_epoch(&clk, now), 9);
}

static struct kunit_case clock_cases[] = {
	KUNIT_CASE(epoch_counts_windows),
	KUNIT_CASE(epoch_borders),
	KUNIT_CASE(stamp_before_base),
	KUNIT_CASE(change_keeps_epoch),
	KUNIT_CASE(change_to_nothing),
	KUNIT_CASE(change_keeps_heat),
	KUNIT_CASE(change_lets_time_pass),
	{}
};

static struct kunit_suite clock_suite = {
	.name		= "pghot_clock",
	.test_cases	= clock_cases,
};

kunit_test_suite(clock_suite);
