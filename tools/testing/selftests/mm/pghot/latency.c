// SPDX-License-Identifier: GPL-2.0
/*
 * What makes a hint fault that of a hot page: both measures of its latency.
 *
 * Each page is armed once and touched once here, so what is recorded follows
 * from the latency alone.
 */
#include "kselftest_harness.h"
#include "pghot_util.h"

#define NR		2048

FIXTURE(latency)
{
	char *p;
};

FIXTURE_VARIANT(latency)
{
	const char *measure;
};

FIXTURE_VARIANT_ADD(latency, time) { .measure = "time", };
FIXTURE_VARIANT_ADD(latency, faults) { .measure = "faults", };

FIXTURE_SETUP(latency)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pg_write(PG_HINT_DIR "/latency_measure", "%s", variant->measure));
	self->p = pg_map_slow(NR);
	ASSERT_NE(NULL, self->p);
}

FIXTURE_TEARDOWN(latency)
{
	pg_stop();
}

/* The defaults find what is used all the time. */
TEST_F_TIMEOUT(latency, defaults, PG_TIMEOUT)
{
	ASSERT_EQ(0, pg_sources(true));
	EXPECT_TRUE(pg_touch_until(self->p, NR, 8,
				   pg_on_dram(self->p, NR, 8) == NR / 8));
	EXPECT_EQ(NR / 8, pg_on(self->p + pg_page, NR - 1, 8, pg_m.slow));
}

/* With a limit that nothing keeps, one touch makes nothing hot. */
TEST_F_TIMEOUT(latency, strict, PG_TIMEOUT)
{
	struct pg_counts c;

	ASSERT_EQ(0, pg_write(PG_HINT_DIR "/latency_ms", "1"));
	ASSERT_EQ(0, pg_write(PG_HINT_DIR "/latency_faults", "1"));
	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_arm());
	/* Late by any clock. */
	pg_sleep_ms(50);
	pg_touch(self->p, NR, 1);
	pg_sleep_ms(200);
	ASSERT_EQ(0, pg_sources(false));
	pg_since(&c);

	EXPECT_GE(c.hint_faults, NR);
	/*
	 * By time, none: only what faults a multiple of 4.096 s late is mistaken
	 * for early. By faults, those that CPUs count before they tell.
	 */
	EXPECT_LE(pg_on_dram(self->p, NR, 1), NR / 32);
}

/* With a generous limit, the same makes everything hot. */
TEST_F_TIMEOUT(latency, generous, PG_TIMEOUT)
{
	struct pg_deadline d = pg_deadline();
	struct pg_counts c;

	ASSERT_EQ(0, pg_write(PG_HINT_DIR "/latency_ms", "3000"));
	ASSERT_EQ(0, pg_write(PG_HINT_DIR "/latency_faults", "%d", 16 * NR));
	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	/* A slow machine may need longer than that to touch them all once. */
	while (pg_on_dram(self->p, NR, 1) < NR && !pg_expired(&d)) {
		ASSERT_TRUE(pg_arm());
		pg_touch(self->p, NR, 1);
	}
	EXPECT_TRUE(pg_wait_until(pg_on_dram(self->p, NR, 1) == NR));
	ASSERT_EQ(0, pg_sources(false));
	pg_since(&c);
	/* A scan that comes in between arms some again. */
	EXPECT_GE(c.recorded, NR);
	EXPECT_GE(c.promoted, NR);
}

/*
 * In between: the measure is exact enough to tell the first from the others. CPUs
 * count faults in batches, so some are off at the edge.
 */
#define EDGE	64

FIXTURE(order)
{
	char *p;
};

FIXTURE_SETUP(order)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pg_write(PG_HINT_DIR "/latency_measure", "faults"));
	self->p = pg_map_slow(NR);
	ASSERT_NE(NULL, self->p);
}

FIXTURE_TEARDOWN(order)
{
	pg_stop();
}

TEST_F_TIMEOUT(order, first_faults, PG_TIMEOUT)
{
	struct pg_counts c;

	ASSERT_EQ(0, pg_write(PG_HINT_DIR "/latency_faults", "%d", NR / 4));
	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_arm());
	pg_touch(self->p, NR, 1);
	EXPECT_TRUE(pg_wait_until(pg_on_dram(self->p, NR, 1) >= NR / 4 - EDGE));
	ASSERT_EQ(0, pg_sources(false));
	pg_since(&c);
	EXPECT_GE(c.recorded, NR / 4 - EDGE);
	EXPECT_LE(pg_on_dram(self->p, NR, 1), NR / 4 + EDGE);
	/* In the order in which they were touched. */
	EXPECT_GE(pg_on_dram(self->p, NR / 4, 1), NR / 4 - EDGE);
	EXPECT_LE(pg_on_dram(self->p + (NR / 4 + EDGE) * pg_page,
			     NR - NR / 4 - EDGE, 1), EDGE);
}

int main(int argc, char **argv)
{
	return pg_main(argc, argv, test_harness_run);
}
