// SPDX-License-Identifier: GPL-2.0
/*
 * Hot pages go to DRAM, others do not, and the counters tell the truth.
 */
#include <limits.h>
#include <sys/stat.h>

#include "kselftest_harness.h"
#include "pghot_util.h"

#define NR		1024
#define STEP		2		/* every other page is hot */
#define NR_HOT		(NR / STEP)

FIXTURE(promote)
{
};

FIXTURE_SETUP(promote)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);

	if (missing)
		SKIP(return, "%s", missing);
}

FIXTURE_TEARDOWN(promote)
{
	pg_stop();
}

/* ===== With each mode of NUMA balancing ===== */

FIXTURE(mode)
{
	char *p;
};

FIXTURE_VARIANT(mode)
{
	int numa_balancing;
};

FIXTURE_VARIANT_ADD(mode, balancing_0) { .numa_balancing = 0, };
FIXTURE_VARIANT_ADD(mode, balancing_1) { .numa_balancing = 1, };
FIXTURE_VARIANT_ADD(mode, balancing_2) { .numa_balancing = 2, };

FIXTURE_SETUP(mode)
{
	const char *missing = pg_start(PG_NEED_PROMOTION | PG_NEED_CGROUP);

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pg_write("/proc/sys/kernel/numa_balancing", "%d",
			      variant->numa_balancing));
}

FIXTURE_TEARDOWN(mode)
{
	pg_stop();
}

TEST_F_TIMEOUT(mode, hot_pages, PG_TIMEOUT)
{
	struct pg_counts c;
	char group[32];
	long now;

	/* A new one: memory.stat lags behind, so a difference may mislead. */
	snprintf(group, sizeof(group), "promote-%d", variant->numa_balancing);
	ASSERT_NE(NULL, pg_cgroup(group));
	ASSERT_EQ(0, pg_cgroup_enter(group));
	ASSERT_EQ(0, pg_cgroup_stat(group, "pgpromote_success"));
	ASSERT_EQ(0, pg_cgroup_stat(group, "numa_pages_migrated"));
	self->p = pg_map_slow(NR);
	ASSERT_NE(NULL, self->p);

	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	EXPECT_TRUE(pg_touch_until(self->p, NR, STEP,
				   pg_on_dram(self->p, NR, STEP) == NR_HOT));
	ASSERT_EQ(0, pg_sources(false));
	pg_since(&c);
	/* Or it would go on promoting what the rest of the test reads. */
	ASSERT_EQ(0, pg_write("/proc/sys/kernel/numa_balancing", "0"));

	EXPECT_EQ(NR_HOT, pg_on_dram(self->p, NR, STEP));
	/* They were used on one node, and went there. */
	EXPECT_EQ(NR_HOT, pg_on(self->p, NR, STEP, pg_m.dram[0]));
	/* The others were not touched since they were filled. */
	EXPECT_EQ(NR_HOT, pg_on(self->p + pg_page, NR - 1, STEP, pg_m.slow));
	EXPECT_EQ(0, pg_damage(self->p, NR, 0));

	/* What moved was moved by pghot, and not by the fault. */
	EXPECT_EQ(c.promoted, c.success);
	EXPECT_GE(c.success, NR_HOT);
	EXPECT_GE(c.candidate, c.success);
	EXPECT_EQ(c.candidates, c.candidate);
	EXPECT_GE(c.recorded, NR_HOT);
	EXPECT_GE(c.reported, c.recorded);
	/* Balancing between DRAM nodes may add to it. */
	EXPECT_GE(c.migrated, c.success);
	EXPECT_TRUE(c.migrated == c.success || variant->numa_balancing & 1);

	/* Of this group, only these pages could move. */
	EXPECT_TRUE(pg_wait_until((now = pg_cgroup_stat(group, "pgpromote_success")) >=
				  NR_HOT));
	EXPECT_EQ(NR_HOT, now);
	EXPECT_TRUE(pg_wait_until((now = pg_cgroup_stat(group, "numa_pages_migrated")) >=
				  NR_HOT));
	EXPECT_TRUE(now == NR_HOT || variant->numa_balancing & 1)
		TH_LOG("%ld pages", now);
}

/* With all sources off, NUMA balancing does what it did, and pghot nothing. */
TEST_F_TIMEOUT(mode, source_off, PG_TIMEOUT)
{
	struct pg_counts c;
	long seq, updates, moved = 0;
	size_t promoted = 0;
	int i;

	/* Faults that are left from a source that was on must not count. */
	self->p = pg_map_slow(NR);
	ASSERT_NE(NULL, self->p);
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_arm());
	ASSERT_EQ(0, pg_sources(false));
	EXPECT_EQ(0, pg_get("bytes_in_use"));

	pg_count(&c);
	updates = pg_vmstat("numa_pte_updates");
	if (variant->numa_balancing & 2) {
		/* The fault path promotes, as without pghot. */
		EXPECT_TRUE(pg_touch_until(self->p, NR, STEP,
					   (promoted = pg_on_dram(self->p, NR, STEP)) >=
					   NR_HOT * 9 / 10));
		pg_since(&c);
		EXPECT_GE(c.success, promoted);
	} else {
		/* As long as it took to arm everything above, and then some. */
		seq = pg_scan_seq();
		for (i = 0; i < 50; i++)
			pg_touch_a_while(self->p, NR, STEP);
		pg_since(&c);
		EXPECT_EQ(0, c.success);
		EXPECT_EQ(0, c.candidate);
		/* Mode 1 moves pages to who uses them, wherever they are. */
		if (!variant->numa_balancing)
			moved = pg_on_dram(self->p, NR, 1) +
				pg_vmstat("numa_pte_updates") - updates +
				pg_scan_seq() - seq;
	}
	EXPECT_EQ(0, moved);
	EXPECT_EQ(0, c.promoted);
	EXPECT_EQ(0, c.candidates);
	EXPECT_EQ(0, c.visited);
	EXPECT_EQ(0, c.recorded);
	EXPECT_EQ(0, c.reported);
}

/* ===== Huge pages ===== */

#define NR_THP		2
#define PAGES_PER_THP	((2UL << 20) / pg_page)

TEST_F_TIMEOUT(promote, huge_pages, PG_TIMEOUT)
{
	size_t nr = (NR_THP + 1) * PAGES_PER_THP;
	struct pg_counts c;
	char *p;

	p = pg_map_thp(NR_THP + 1);
	if (!p)
		SKIP(return, "no huge pages on the slow node");

	/* Any of its pages may be the one that is used. The last one is cold. */
	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	EXPECT_TRUE(pg_touch_until(p + 77 * pg_page, NR_THP * PAGES_PER_THP - 77,
				   PAGES_PER_THP,
				   pg_on_dram(p, nr - PAGES_PER_THP, 1) ==
				   nr - PAGES_PER_THP));
	ASSERT_EQ(0, pg_sources(false));
	pg_since(&c);

	EXPECT_GE(c.success, nr - PAGES_PER_THP);
	EXPECT_EQ(c.promoted, c.success);
	EXPECT_GE(c.candidate, c.success);
	EXPECT_EQ(PAGES_PER_THP, pg_on(p + NR_THP * PAGES_PER_THP * pg_page,
				       PAGES_PER_THP, 1, pg_m.slow));
	/* In one piece: neither split nor collapsed. */
	EXPECT_EQ(nr * pg_page / 1024, pg_smaps(p, "AnonHugePages"));
	EXPECT_EQ(0, pg_damage(p, nr, 0));
}

/* ===== The right node, and little work ===== */

TEST_F_TIMEOUT(promote, accessing_node, PG_TIMEOUT)
{
	const char *missing = pg_start(PG_NEED_PROMOTION | PG_NEED_2DRAM);
	char *p;
	int i;

	if (missing)
		SKIP(return, "%s", missing);

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pg_run_on(pg_m.dram[i]));
		p = pg_map_slow(64);
		ASSERT_NE(NULL, p);
		ASSERT_EQ(0, pg_sources(true));
		EXPECT_TRUE(pg_touch_until(p, 64, 1, pg_on_dram(p, 64, 1) == 64));
		EXPECT_EQ(64, pg_on(p, 64, 1, pg_m.dram[i]));
		EXPECT_EQ(pg_m.dram[i],
			  pg_read(PG_DIR "/nodes/node%d/target", pg_m.slow));
		ASSERT_EQ(0, pg_sources(false));
		pg_unmap(p, 64);
	}
}

/* An administrator's node wins over the accessing one. */
TEST_F_TIMEOUT(promote, pinned_target, PG_TIMEOUT)
{
	const char *missing = pg_start(PG_NEED_PROMOTION | PG_NEED_2DRAM);
	char *p;

	if (missing)
		SKIP(return, "%s", missing);

	ASSERT_EQ(0, pg_set("target_nid", pg_m.dram[1]));
	p = pg_map_slow(64);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, pg_sources(true));
	EXPECT_TRUE(pg_touch_until(p, 64, 1, pg_on_dram(p, 64, 1) == 64));
	EXPECT_EQ(64, pg_on(p, 64, 1, pg_m.dram[1]));
}

/* Work grows with what is hot, not with the node. */
TEST_F_TIMEOUT(promote, one_page_of_a_node, PG_TIMEOUT)
{
	struct pg_counts c;
	char *p;
	int i;

	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	for (i = 0; i < 4; i++) {
		p = pg_map_slow(1);
		ASSERT_NE(NULL, p);
		EXPECT_TRUE(pg_touch_until(p, 1, 1, pg_on_dram(p, 1, 1) == 1));
		pg_unmap(p, 1);
	}
	ASSERT_EQ(0, pg_sources(false));
	pg_since(&c);
	EXPECT_GE(c.promoted, 4);
	EXPECT_LE(c.visited, 2 * c.promoted);
}

/* A page is a candidate from freq_threshold touches on, and not before. */
TEST_F_TIMEOUT(promote, threshold, PG_TIMEOUT)
{
	struct pg_counts c;
	char *p, *once;

	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	ASSERT_EQ(0, pg_set("freq_threshold", 3));
	ASSERT_EQ(0, pg_set("promote_window_ms", 600000));
	p = pg_map_slow(64);
	once = pg_map_slow(64);
	ASSERT_NE(NULL, p);
	ASSERT_NE(NULL, once);

	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_heat(p, 64, 1, 2));
	ASSERT_TRUE(pg_heat(once, 64, 1, 1));
	ASSERT_TRUE(pg_heat(p, 64, 1, 1));
	EXPECT_TRUE(pg_wait_until(pg_on_dram(p, 64, 1) == 64));
	EXPECT_EQ(64, pg_on(once, 64, 1, pg_m.slow));
	pg_since(&c);
	EXPECT_GE(c.recorded, 4 * 64);
	EXPECT_GE(c.candidates, 64);
}

/* ===== Tracepoints ===== */

static bool trace_has(const char *instance, const char *event, const char *field)
{
	char path[PATH_MAX], line[512], want[64];
	bool found = false;
	FILE *f;

	snprintf(want, sizeof(want), " %s: ", event);
	snprintf(path, sizeof(path), "%s/trace", instance);
	f = fopen(path, "r");
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, want) && strstr(line, field);
	fclose(f);
	return found;
}

TEST_F_TIMEOUT(promote, tracepoints, PG_TIMEOUT)
{
	const char *instance = "/sys/kernel/tracing/instances/pghot-test";
	char path[PATH_MAX], field[64];
	char *p;

	if (access("/sys/kernel/tracing/events/pghot", F_OK))
		SKIP(return, "no tracefs with events");
	mkdir(instance, 0755);
	snprintf(path, sizeof(path), "%s/events/pghot/enable", instance);
	ASSERT_EQ(0, pg_write(path, "1"));

	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	p = pg_map_slow(8);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_heat(p, 8, 1, 1));
	/* First the limit holds them back ... */
	EXPECT_TRUE(pg_wait_until(trace_has(instance, "pghot_skip",
					    "reason=ratelimit")));
	/* ... then they go. */
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	EXPECT_TRUE(pg_wait_until(pg_on_dram(p, 8, 1) == 8));
	ASSERT_EQ(0, pg_sources(false));

	EXPECT_TRUE(trace_has(instance, "pghot_record", "source=hintfaults"));
	EXPECT_TRUE(trace_has(instance, "pghot_hot", "heat=1"));
	snprintf(field, sizeof(field), "src_nid=%d dst_nid=%d", pg_m.slow, pg_m.dram[0]);
	EXPECT_TRUE(trace_has(instance, "pghot_promote", field));
	EXPECT_TRUE(trace_has(instance, "pghot_promote", "nr_promoted="));
	pg_write(path, "0");
	rmdir(instance);
}

int main(int argc, char **argv)
{
	return pg_main(argc, argv, test_harness_run);
}
