// SPDX-License-Identifier: GPL-2.0
/*
 * The limit of the rate, and who goes first under it.
 */
#include <fcntl.h>
#include <sys/uio.h>

#include "kselftest_harness.h"
#include "pghot_util.h"

FIXTURE(limit)
{
};

FIXTURE_SETUP(limit)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	ASSERT_EQ(0, pg_set("promote_window_ms", 600000));
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
}

FIXTURE_TEARDOWN(limit)
{
	pg_stop();
}

static long nr_promoted(void)
{
	return pg_read(PG_DIR "/nodes/node%d/promoted", pg_m.slow);
}

/*
 * In any stretch of time t, at most rate * t + what two cycles may spend + one
 * folio. Each look checks the stretch from the beginning, and the one since the
 * look before; the clock is read before the first count and after the second.
 */
static void check_rate(struct __test_metadata *_metadata, char *p, size_t nr,
		       size_t folio_bytes)
{
	const long mbps = 4, sleep_ms = 50;
	const long long rate = mbps << 20;
	const long long slack = rate * 2 * sleep_ms / 1000 + folio_bytes;
	struct pg_deadline d = pg_deadline();
	long long before_first, before, last_before, after;
	long first, last, now;

	ASSERT_EQ(0, pg_set("kmigrated_sleep_ms", sleep_ms));
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_heat(p, nr, folio_bytes / pg_page, 1));
	/* The bucket is empty, and all of them wait. */
	pg_sleep_ms(4 * sleep_ms);

	before_first = pg_now_ms();
	last_before = before_first;
	first = nr_promoted();
	last = first;
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", mbps));
	while (last - first < nr && !pg_expired(&d)) {
		pg_sleep_ms(100);
		before = pg_now_ms();
		now = nr_promoted();
		after = pg_now_ms() + 1;
		EXPECT_LE((now - first) * pg_page,
			  rate * (after - before_first) / 1000 + slack);
		/*
		 * A cycle takes first and counts later: what was counted since
		 * the last look may have been taken a whole cycle before it.
		 */
		EXPECT_LE((now - last) * pg_page,
			  rate * (after - last_before) / 1000 + 2 * slack);
		last = now;
		last_before = before;
	}
	EXPECT_EQ(nr, pg_on_dram(p, nr, 1));
}

TEST_F_TIMEOUT(limit, rate, PG_TIMEOUT)
{
	size_t nr = (12UL << 20) / pg_page;
	char *p = pg_map_slow(nr);

	ASSERT_NE(NULL, p);
	check_rate(_metadata, p, nr, pg_page);
}

TEST_F_TIMEOUT(limit, rate_of_huge_pages, PG_TIMEOUT)
{
	size_t nr = (12UL << 20) / pg_page;
	char *p = pg_map_thp(6);

	if (!p)
		SKIP(return, "no huge pages on the slow node");
	check_rate(_metadata, p, nr, 2UL << 20);
}

TEST_F_TIMEOUT(limit, zero_stops, PG_TIMEOUT)
{
	struct pg_counts c, now;
	char *p = pg_map_slow(256);

	ASSERT_NE(NULL, p);
	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_heat(p, 256, 1, 2));
	EXPECT_TRUE(pg_wait_until(({
		now = c;
		pg_since(&now);
		now.skipped[PG_RATELIMIT] >= 3 * 256;
	})));
	EXPECT_EQ(256, pg_on(p, 256, 1, pg_m.slow));
	EXPECT_EQ(0, now.promoted);
	EXPECT_EQ(0, now.candidate);
}

/*
 * Pages that cannot be moved, hotter than all others and more than the budget of a
 * cycle: they wait, and the others do not wait for them.
 */
TEST_F_TIMEOUT(limit, immovable_do_not_count, PG_TIMEOUT)
{
	enum { CROWD = 2048, NR = 512 };
	char *crowd = pg_map_slow(CROWD), *p = pg_map_slow(NR);
	struct iovec iov = { crowd, CROWD * pg_page };
	int fds[2];

	ASSERT_NE(NULL, crowd);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_heat(crowd, CROWD, 1, 4));
	ASSERT_TRUE(pg_heat(p, NR, 1, 1));
	ASSERT_EQ(0, pipe(fds));
	if (fcntl(fds[1], F_SETPIPE_SZ, CROWD * (int)pg_page) < 0)
		SKIP(return, "no pipe of that size");
	ASSERT_EQ(CROWD * pg_page, vmsplice(fds[1], &iov, 1, 0));

	/* 102 pages a cycle. */
	ASSERT_EQ(0, pg_set("kmigrated_sleep_ms", 50));
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 8));
	EXPECT_TRUE(pg_wait_until(pg_on_dram(p, NR, 1) == NR));
	EXPECT_EQ(CROWD, pg_on(crowd, CROWD, 1, pg_m.slow));
	close(fds[0]);
	close(fds[1]);
	/* They have not been given up. */
	EXPECT_TRUE(pg_wait_until(pg_on_dram(crowd, CROWD, 1) == CROWD));
}

/* Lower addresses must not go first: the hotter pages are mapped last. */
TEST_F_TIMEOUT(limit, hottest_first, PG_TIMEOUT)
{
	enum { NR = 512 };
	struct pg_deadline d = pg_deadline();
	char *cool = pg_map_slow(NR), *hot = pg_map_slow(NR);
	size_t cool_there, hot_there, seen = 0;

	ASSERT_NE(NULL, cool);
	ASSERT_NE(NULL, hot);
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_heat(hot, NR, 1, 3));
	ASSERT_TRUE(pg_heat(cool, NR, 1, 1));
	/*
	 * The last pages may still be in a CPU's batch and not on the LRU: those are
	 * busy, and the cooler ones rightly do not wait for them.
	 */
	ASSERT_EQ(0, pg_write("/proc/sys/vm/drop_caches", "1"));

	/* 256 pages a second, in steps of 26 at most. */
	ASSERT_EQ(0, pg_set("kmigrated_sleep_ms", 50));
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1));
	do {
		/* In this order: both only grow. */
		cool_there = pg_on_dram(cool, NR, 1);
		hot_there = pg_on_dram(hot, NR, 1);
		if (cool_there) {
			EXPECT_EQ(NR, hot_there)
				break;
		} else if (hot_there > seen && hot_there < NR) {
			seen = hot_there;
		}
		pg_sleep_ms(20);
	} while (cool_there < NR / 4 && !pg_expired(&d));
	EXPECT_GE(cool_there, NR / 4);
	/* The limit was in force: they did not come all at once. */
	EXPECT_GT(seen, 0);
}

int main(int argc, char **argv)
{
	return pg_main(argc, argv, test_harness_run);
}
