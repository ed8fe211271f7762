// SPDX-License-Identifier: GPL-2.0
/*
 * Promotion to DRAM that is full: another node, or reclaim and patience.
 */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "pghot_util.h"

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT	1
#endif

#define NR		64
#define MORE		2048
#define MAX_HOGS	8

/* What a node has room for, and what the program uses, far more than all have. */
#define ROOM		1024
#define TOO_MANY	(8 * ROOM)

/* Filling more than that takes too long to be a test. */
#define MAX_DRAM_KB	(8L << 20)

struct hog {
	atomic_int ready;
	atomic_int failed;
};

struct hogs {
	struct hog *hog;
	pid_t pid[MAX_HOGS];
	int nr;
};

FIXTURE(pressure)
{
	struct hogs hogs;
	char *p;
};

FIXTURE_SETUP(pressure)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);
	long kb = 0;
	int nid, nr = 0;

	if (missing)
		SKIP(return, "%s", missing);
	for (nid = 0; nid < PG_MAX_NODES; nid++) {
		if (pg_m.is_dram[nid]) {
			kb += pg_node_stat(nid, "MemTotal");
			nr++;
		}
	}
	if ((kb > MAX_DRAM_KB && !getenv("PGHOT_FILL_DRAM")) || nr > MAX_HOGS)
		SKIP(return, "more than 8 GB of DRAM to fill; PGHOT_FILL_DRAM=1 does it");
	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	ASSERT_EQ(0, pg_set("promote_window_ms", 600000));
	/* Or CPUs keep thousands of free pages to themselves that no count shows. */
	pg_write("/proc/sys/vm/percpu_pagelist_high_fraction", "1000000");
	self->hogs.hog = mmap(NULL, MAX_HOGS * sizeof(struct hog),
			      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->hogs.hog);
	self->p = pg_map_slow(NR);
	ASSERT_NE(NULL, self->p);
	/* The hogs have policies, which count for what they share. */
	madvise(self->p, NR * pg_page, MADV_DONTFORK);
}

FIXTURE_TEARDOWN(pressure)
{
	pg_stop();
}

/*
 * How many pages can be allocated on a node until all its zones are at their
 * high mark.
 */
static long room(int nid)
{
	long free = 0, high = 0, val, best = 0, reserve;
	char line[256], *at;
	bool mine = false;
	int node;
	FILE *f;

	f = fopen("/proc/zoneinfo", "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Node %d, zone", &node) == 1) {
			mine = node == nid;
			free = 0;
			high = 0;
		}
		if (!mine)
			continue;
		if (sscanf(line, " pages free %ld", &free) == 1 ||
		    sscanf(line, " high %ld", &high) == 1)
			continue;
		at = strstr(line, "protection: (");
		if (!at)
			continue;
		/* What the zone keeps back from users of the highest zone. */
		at = strchr(at, '(') + 1;
		for (reserve = 0; isdigit(*at); at += *at == ',' ? 2 : 0) {
			val = strtol(at, &at, 10);
			if (val > reserve)
				reserve = val;
		}
		if (free - high - reserve > best)
			best = free - high - reserve;
	}
	fclose(f);
	return best;
}

/*
 * Fill a node but for @keep pages. If that is none, keep it full. With @lock nothing
 * of it can be reclaimed; else it leaves room that reclaim makes to others for a
 * while.
 */
static void fill_node(struct hog *hog, int nid, bool lock, long keep)
{
	const size_t huge = 2UL << 20;
	size_t size, used = 0;
	char *area;
	long more;

	size = (pg_node_stat(nid, "MemTotal") << 10) + 2 * huge;
	area = mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area == MAP_FAILED ||
	    (lock && syscall(SYS_mlock2, area, size, MLOCK_ONFAULT)) || pg_bind(nid))
		goto fail;

	/* The bulk in huge pages, where there are any. */
	madvise(area, size, MADV_HUGEPAGE);
	while ((room(nid) - keep) * pg_page > 4 * huge && used + huge <= size) {
		pg_touch_write(area + used, huge / pg_page);
		used += huge;
	}
	madvise(area, size, MADV_NOHUGEPAGE);
	for (;;) {
		/* To look takes long: reclaim would be faster than small steps. */
		while ((more = room(nid) - keep) > 0) {
			if (more > 256)
				more = 256;
			if (used + more * pg_page > size)
				goto fail;
			pg_touch_write(area + used, more);
			used += more * pg_page;
		}
		hog->ready = 1;
		while (keep)
			pause();
		pg_sleep_ms(lock ? 2 : 200);
	}
fail:
	hog->failed = 1;
	hog->ready = 1;
	for (;;)
		pause();
}

static void start_hog(struct __test_metadata *_metadata, struct hogs *hogs,
		      int nid, bool lock, long keep)
{
	struct hog *hog = &hogs->hog[hogs->nr];
	pid_t pid;

	hog->ready = 0;
	hog->failed = 0;
	pid = pg_fork();
	if (!pid) {
		pg_run_anywhere();
		/* Rather this one than the test. */
		pg_write("/proc/self/oom_score_adj", "1000");
		fill_node(hog, nid, lock, keep);
	}
	ASSERT_GT(pid, 0);
	hogs->pid[hogs->nr++] = pid;
	ASSERT_TRUE(pg_wait_until(hog->ready));
	ASSERT_FALSE(hog->failed);
}

static void start_hogs(struct __test_metadata *_metadata, struct hogs *hogs,
		       bool lock, long keep)
{
	int nid;

	for (nid = 0; nid < PG_MAX_NODES; nid++)
		if (pg_m.is_dram[nid])
			start_hog(_metadata, hogs, nid, lock, keep);
}

static void end_hogs(struct hogs *hogs)
{
	while (hogs->nr) {
		hogs->nr--;
		kill(hogs->pid[hogs->nr], SIGKILL);
		waitpid(hogs->pid[hogs->nr], NULL, 0);
	}
}

/* Nothing fits anywhere: kswapd is woken, and the pages wait. */
TEST_F_TIMEOUT(pressure, all_full, PG_TIMEOUT)
{
	struct pg_counts c, now;
	long runs;
	char *q;

	q = pg_map_slow(MORE);
	ASSERT_NE(NULL, q);
	madvise(q, MORE * pg_page, MADV_DONTFORK);
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	ASSERT_EQ(0, pg_write("/sys/kernel/mm/numa/demotion_enabled", "0"));
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_heat(q, MORE, 1, 1));
	start_hogs(_metadata, &self->hogs, true, 0);

	pg_count(&c);
	runs = pg_vmstat("pageoutrun");
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	EXPECT_TRUE(pg_wait_until(({
		now = c;
		pg_since(&now);
		now.skipped[PG_NOSPACE] >= 5;
	})));
	EXPECT_TRUE(pg_wait_until(pg_vmstat("pageoutrun") > runs));
	/* Some may have found a gap. */
	EXPECT_GE(pg_on(q, MORE, 1, pg_m.slow), MORE / 2);

	/* Nobody touches them again. */
	end_hogs(&self->hogs);
	EXPECT_TRUE(pg_wait_until(pg_on_dram(q, MORE, 1) == MORE));
	EXPECT_EQ(0, pg_damage(q, MORE, 0));
}

/* The node that uses them is full, the other one is not. */
TEST_F_TIMEOUT(pressure, other_node, PG_TIMEOUT)
{
	if (pg_m.nr_dram < 2)
		SKIP(return, "needs two DRAM nodes with CPUs");
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	ASSERT_EQ(0, pg_write("/sys/kernel/mm/numa/demotion_enabled", "0"));
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_heat(self->p, NR, 1, 1));
	start_hog(_metadata, &self->hogs, pg_m.dram[0], true, 0);

	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	EXPECT_TRUE(pg_wait_until(pg_on_dram(self->p, NR, 1) == NR));
	EXPECT_GE(pg_on(self->p, NR, 1, pg_m.dram[1]), NR - 8);
	end_hogs(&self->hogs);
}

/*
 * Full of pages that can be demoted: kswapd makes room though
 * kernel.numa_balancing is 0, and promotion goes on.
 */
TEST_F_TIMEOUT(pressure, demotion, PG_TIMEOUT)
{
	long demoted;
	char *q;

	/* Not while the hogs grow: they would never be done. */
	if (pg_write("/sys/kernel/mm/numa/demotion_enabled", "0"))
		SKIP(return, "no demotion");
	q = pg_map_slow(MORE);
	ASSERT_NE(NULL, q);
	madvise(q, MORE * pg_page, MADV_DONTFORK);
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_heat(q, MORE, 1, 1));
	start_hogs(_metadata, &self->hogs, false, 0);

	demoted = pg_vmstat("pgdemote_kswapd");
	ASSERT_EQ(0, pg_write("/sys/kernel/mm/numa/demotion_enabled", "1"));
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	/* If they found room as it was, they go back, and the hogs take it. */
	EXPECT_TRUE(pg_touch_until(q, MORE, 1, ({
		bool there = pg_on_dram(q, MORE, 1) == MORE;
		bool made_room = pg_vmstat("pgdemote_kswapd") > demoted;

		if (there && !made_room) {
			pg_move_some(q, MORE, pg_m.slow);
			pg_sleep_ms(500);
		}
		there && made_room;
	})))
		TH_LOG("%zu of %d on DRAM, %ld demoted", pg_on_dram(q, MORE, 1), MORE,
		       pg_vmstat("pgdemote_kswapd") - demoted);
	end_hogs(&self->hogs);
	EXPECT_EQ(0, pg_damage(q, MORE, 0));
}

static long slow_get(const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "nodes/node%d/%s", pg_m.slow, file);
	return pg_get(path);
}

/*
 * Somebody has a group's memory reclaimed all the time, as daemons do to see what
 * it needs. That is no shortage of DRAM, and does not slow down promotion.
 */
TEST_F_TIMEOUT(pressure, proactive_reclaim, PG_TIMEOUT)
{
	enum { PAGES = 4096 };
	struct pg_counts c, now;
	const char *group;
	long before;
	pid_t pid;
	char *q;

	if (pg_write("/sys/kernel/mm/numa/demotion_enabled", "1"))
		SKIP(return, "no demotion");
	group = pg_cgroup("reclaimed");
	if (!group || pg_cgroup_write(group, "memory.reclaim", "4096") == -ENOENT)
		SKIP(return, "no memory.reclaim");
	ASSERT_EQ(0, pg_set("promote_window_ms", 1000));
	/* So low that the little that is promoted here counts. */
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 8));
	ASSERT_EQ(0, pg_sources(true));
	pid = pg_fork();
	if (!pid) {
		if (pg_cgroup_enter(group))
			_exit(1);
		q = pg_map(PAGES);
		for (;;) {
			pg_touch_write(q, PAGES);
			pg_sleep_ms(100);
		}
	}
	ASSERT_GT(pid, 0);

	/* Some windows long, in which most of it goes down and comes back at once. */
	before = pg_vmstat("pgdemote_proactive");
	pg_count(&c);
	EXPECT_TRUE(pg_wait_until(({
		pg_cgroup_write(group, "memory.reclaim", "4194304");
		EXPECT_EQ(0, slow_get("throttle"));
		now = c;
		pg_since(&now);
		pg_vmstat("pgdemote_proactive") - before >= 2 * PAGES &&
		now.promoted >= 2 * PAGES;
	})));
	EXPECT_EQ(0, slow_get("throttle"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/*
 * A program uses more than fits into DRAM: what is promoted pushes out what was
 * promoted before, and promotion slows down. When it uses less, promotion is what
 * it was.
 */
TEST_F_TIMEOUT(pressure, more_than_fits, PG_TIMEOUT)
{
	struct pg_counts c;
	char *q;

	if (pg_write("/sys/kernel/mm/numa/demotion_enabled", "0"))
		SKIP(return, "no demotion");
	q = pg_map_slow(TOO_MANY);
	ASSERT_NE(NULL, q);
	madvise(q, TOO_MANY * pg_page, MADV_DONTFORK);
	start_hogs(_metadata, &self->hogs, true, ROOM);

	ASSERT_EQ(0, pg_set("promote_window_ms", 4000));
	/* What is much slower than the limit by itself is let alone. */
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 8));
	ASSERT_EQ(0, pg_write("/sys/kernel/mm/numa/demotion_enabled", "1"));
	ASSERT_EQ(0, pg_sources(true));
	EXPECT_EQ(0, slow_get("throttle"));
	pg_count(&c);
	EXPECT_TRUE(pg_touch_until(q, TOO_MANY, 1, slow_get("throttle") > 0))
		TH_LOG("%ld demoted and hot, %ld demoted", slow_get("demoted_hot"),
		       pg_vmstat("pgdemote_kswapd"));
	EXPECT_GT(slow_get("demoted_hot"), 0);
	EXPECT_GT(pg_vmstat("pghot_demoted_hot"), 0);
	pg_since(&c);
	EXPECT_GT(c.promoted, 0);

	/* The throttle is looked at when there is something to promote. */
	EXPECT_TRUE(pg_touch_until(q, NR, 1, ({
		bool there = pg_on_dram(q, NR, 1) == NR;
		bool over = !slow_get("throttle");

		if (there && !over) {
			pg_move_some(q, NR, pg_m.slow);
			pg_sleep_ms(100);
		}
		there && over;
	})))
		TH_LOG("%zu of %d on DRAM, throttle %ld", pg_on_dram(q, NR, 1), NR,
		       slow_get("throttle"));
	end_hogs(&self->hogs);
	EXPECT_EQ(0, pg_damage(q, TOO_MANY, 0));
}

int main(int argc, char **argv)
{
	return pg_main(argc, argv, test_harness_run);
}
