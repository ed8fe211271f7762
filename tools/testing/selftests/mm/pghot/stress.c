// SPDX-License-Identifier: GPL-2.0
/*
 * What else may happen to pages while they are promoted. Whatever it is, data
 * stays what it was, and promotion goes on.
 */
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "pghot_util.h"

#define NR		256
#define MIN_ROUNDS	8
#define MIN_PROMOTED	NR

struct area {
	char *p;
	unsigned int seed;
};

/* Children write to pages that they share with their parent. */
static bool do_fork(struct area *a)
{
	pid_t pid;
	bool ok;
	int i;

	for (i = 0; i < 3; i++) {
		pid = pg_fork();
		if (!pid) {
			pg_touch_a_while(a->p, NR, 1);
			if (pg_damage(a->p, NR, a->seed))
				_exit(1);
			pg_fill(a->p, NR / 2, ~a->seed);
			pg_touch_a_while(a->p, NR, 1);
			/* Patterns begin with the first page of an area. */
			_exit(!!pg_damage(a->p, NR / 2, ~a->seed));
		}
		pg_touch_a_while(a->p, NR, 1);
		ok = pid > 0 && pg_join(pid);
		if (!ok)
			return false;
	}
	return true;
}

static bool do_mremap(struct area *a)
{
	char *to;
	int i;

	for (i = 0; i < 8; i++) {
		to = mmap(NULL, NR * pg_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
		if (to == MAP_FAILED)
			return false;
		to = mremap(a->p, NR * pg_page, NR * pg_page,
			    MREMAP_MAYMOVE | MREMAP_FIXED, to);
		if (to == MAP_FAILED)
			return false;
		a->p = to;
		pg_touch(a->p, NR, 1);
	}
	return true;
}

/* Candidates vanish, and others come in their place. */
static bool do_munmap(struct area *a)
{
	char *q = pg_map_slow(NR);

	if (!q)
		return false;
	pg_touch_a_while(q, NR, 1);
	pg_unmap(q, NR / 2);
	pg_touch_a_while(q + NR / 2 * pg_page, NR / 2, 1);
	return !madvise(q + NR / 2 * pg_page, NR / 2 * pg_page, MADV_DONTNEED) &&
	       !munmap(q + NR / 2 * pg_page, NR / 2 * pg_page);
}

static bool do_mlock(struct area *a)
{
	int i;

	for (i = 0; i < 8; i++) {
		if (mlock(a->p, NR * pg_page))
			return false;
		pg_touch(a->p, NR, 1);
		if (munlock(a->p, NR * pg_page))
			return false;
		pg_touch(a->p, NR, 1);
	}
	return true;
}

static bool do_mprotect(struct area *a)
{
	int i;

	for (i = 0; i < 16; i++) {
		/* Splits the mapping and joins it again. */
		if (mprotect(a->p + i * pg_page, NR / 2 * pg_page, PROT_READ))
			return false;
		pg_touch(a->p, NR, 1);
		if (mprotect(a->p, NR * pg_page, PROT_READ | PROT_WRITE))
			return false;
	}
	return true;
}

/* Equal pages are merged, and written to. */
static bool do_ksm(struct area *a)
{
	char *q = pg_map_slow(NR);
	bool ok = true;
	int i;

	if (!q)
		return false;
	memset(q, 0x5a, NR * pg_page);
	if (madvise(q, NR * pg_page, MADV_MERGEABLE))
		return false;
	for (i = 0; i < 6; i++)
		pg_touch_a_while(q, NR, 1);
	for (i = 0; i < NR; i++) {
		ok &= q[i * pg_page + 99] == 0x5a;
		if (i % 2)
			q[i * pg_page] = i;
	}
	pg_touch_a_while(q, NR, 1);
	for (i = 0; i < NR; i++)
		ok &= q[i * pg_page] == (i % 2 ? (char)i : 0x5a);
	pg_unmap(q, NR);
	return ok;
}

/* Huge pages are split while they are candidates. */
static bool do_split(struct area *a)
{
	size_t nr = (2UL << 20) / pg_page;
	char *q = pg_map_thp(1);
	bool ok;

	/* There may just be none in one piece. */
	if (!q)
		return true;
	pg_touch_a_while(q, nr, 64);
	munmap(q + nr / 2 * pg_page, 16 * pg_page);
	pg_touch_a_while(q, nr / 2, 1);
	ok = !mprotect(q, 16 * pg_page, PROT_READ);
	pg_touch_a_while(q, nr / 2, 1);
	ok &= !pg_damage(q, nr / 2, 0);
	munmap(q, nr * pg_page);
	return ok;
}

/* Another process reads the pages, through references of its own. */
static bool do_read(struct area *a)
{
	struct iovec local = { .iov_len = NR * pg_page, };
	struct iovec remote = { .iov_base = a->p, .iov_len = NR * pg_page, };
	pid_t pid, me = getpid();

	pid = pg_fork();
	if (!pid) {
		local.iov_base = pg_map(NR);
		if (!local.iov_base ||
		    process_vm_readv(me, &local, 1, &remote, 1, 0) != local.iov_len)
			_exit(1);
		_exit(!!pg_damage(local.iov_base, NR, a->seed));
	}
	pg_touch_a_while(a->p, NR, 1);
	return pid > 0 && pg_join(pid);
}

/* Some pages are sent elsewhere by the user. */
static bool do_move(struct area *a)
{
	int i;

	for (i = 0; i < pg_m.nr_dram && i < 4; i++) {
		pg_move_some(a->p, NR / 2, pg_m.dram[i]);
		pg_move_some(a->p, NR / 2, pg_m.slow);
		pg_touch(a->p, NR, 1);
	}
	return true;
}

FIXTURE(stress)
{
	struct area a;
};

FIXTURE_VARIANT(stress)
{
	bool (*op)(struct area *a);
};

FIXTURE_VARIANT_ADD(stress, fork) { .op = do_fork, };
FIXTURE_VARIANT_ADD(stress, mremap) { .op = do_mremap, };
FIXTURE_VARIANT_ADD(stress, munmap) { .op = do_munmap, };
FIXTURE_VARIANT_ADD(stress, mlock) { .op = do_mlock, };
FIXTURE_VARIANT_ADD(stress, mprotect) { .op = do_mprotect, };
FIXTURE_VARIANT_ADD(stress, ksm) { .op = do_ksm, };
FIXTURE_VARIANT_ADD(stress, split) { .op = do_split, };
FIXTURE_VARIANT_ADD(stress, read) { .op = do_read, };
FIXTURE_VARIANT_ADD(stress, move_pages) { .op = do_move, };

FIXTURE_SETUP(stress)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);

	if (missing)
		SKIP(return, "%s", missing);
	if (variant->op == do_ksm &&
	    (pg_write("/sys/kernel/mm/ksm/pages_to_scan", "%d", 4 * NR) ||
	     pg_write("/sys/kernel/mm/ksm/sleep_millisecs", "5") ||
	     pg_write("/sys/kernel/mm/ksm/run", "1")))
		SKIP(return, "no KSM");
	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	ASSERT_EQ(0, pg_set("kmigrated_sleep_ms", 10));
	self->a.p = pg_map_slow(NR);
	ASSERT_NE(NULL, self->a.p);
	ASSERT_EQ(0, pg_sources(true));
}

FIXTURE_TEARDOWN(stress)
{
	pg_stop();
	pg_write("/sys/kernel/mm/ksm/run", "2");
	pg_write("/sys/kernel/mm/ksm/run", "0");
}

TEST_F_TIMEOUT(stress, intact, PG_TIMEOUT)
{
	struct pg_deadline d = pg_deadline();
	struct area *a = &self->a;
	struct pg_counts c, now;
	int rounds;

	pg_count(&c);
	for (rounds = 0; ; rounds++) {
		/* Back to the slow node, with new contents. */
		a->seed = rounds;
		pg_fill(a->p, NR, a->seed);
		pg_move_some(a->p, NR, pg_m.slow);
		pg_touch_a_while(a->p, NR, 1);
		ASSERT_TRUE(variant->op(a));
		pg_touch_a_while(a->p, NR, 1);
		ASSERT_EQ(0, pg_damage(a->p, NR, a->seed));
		now = c;
		pg_since(&now);
		if (rounds >= MIN_ROUNDS && now.promoted >= MIN_PROMOTED)
			break;
		ASSERT_FALSE(pg_expired(&d))
			TH_LOG("after %d rounds: %s", rounds, pg_describe(&c));
	}
	/* Nothing is left in a state that cannot be promoted. */
	pg_count(&c);
	EXPECT_TRUE(pg_touch_until(a->p, NR, 1, pg_on_dram(a->p, NR, 1) == NR))
		TH_LOG("%zu of %d on DRAM; %s", pg_on_dram(a->p, NR, 1), NR, pg_describe(&c));
	EXPECT_EQ(0, pg_damage(a->p, NR, a->seed));
}

/* ===== Suspend ===== */

FIXTURE(switched)
{
};

FIXTURE_SETUP(switched)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);

	if (missing)
		SKIP(return, "%s", missing);
}

FIXTURE_TEARDOWN(switched)
{
	pg_stop();
}

/*
 * What the scan has noted in slow pages stays there after the source was disabled.
 * When they move to DRAM then, NUMA balancing must not take it for a CPU.
 */
TEST_F_TIMEOUT(switched, to_numa_balancing, PG_TIMEOUT)
{
	int from = pg_m.dram[0], to = pg_m.dram[pg_m.nr_dram - 1];
	size_t nr = 4096;
	long faults;
	char *p;

	ASSERT_EQ(0, pg_write("/proc/sys/kernel/numa_balancing", "1"));
	/* It does not look at pages of a single thread that are where it runs. */
	ASSERT_EQ(0, pg_run_on(from));
	/* Times look least like CPUs. */
	ASSERT_EQ(0, pg_write(PG_HINT_DIR "/latency_measure", "time"));
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	p = pg_map_slow(nr);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_heat(p, nr, 1, 1));
	ASSERT_EQ(0, pg_sources(false));
	ASSERT_TRUE(pg_move(p, nr, to));
	faults = pg_vmstat("numa_hint_faults");
	if (from != to)
		EXPECT_TRUE(pg_touch_until(p, nr, 1,
					   pg_vmstat("numa_hint_faults") - faults >= 64));
	EXPECT_EQ(0, pg_damage(p, nr, 0));
}

/* Whoever enables the source is killed at any moment: it is on, or it is off. */
TEST_F_TIMEOUT(switched, by_one_who_is_killed, PG_TIMEOUT)
{
	struct pg_deadline d = pg_deadline();
	pid_t pid[4];
	int i, k;

	for (i = 0; i < 40 && !pg_expired(&d); i++) {
		for (k = 0; k < 4; k++) {
			pid[k] = pg_fork();
			if (!pid[k]) {
				for (;;) {
					pg_sources(false);
					pg_sources(true);
				}
			}
			ASSERT_GT(pid[k], 0);
		}
		pg_sleep_ms(20 + 7 * i % 40);
		for (k = 0; k < 4; k++)
			kill(pid[k], SIGKILL);
		for (k = 0; k < 4; k++)
			waitpid(pid[k], NULL, 0);
		if (pg_get("enabled_sources")) {
			EXPECT_GT(pg_get("bytes_in_use"), 0);
			EXPECT_EQ(0, system("grep -qs '^kmigrated' /proc/[0-9]*/comm"));
		} else {
			EXPECT_EQ(0, pg_get("bytes_in_use"));
			EXPECT_NE(0, system("grep -qs '^kmigrated' /proc/[0-9]*/comm"));
		}
	}
	EXPECT_GT(i, 0);
}

FIXTURE(suspend)
{
};

FIXTURE_SETUP(suspend)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);

	if (missing)
		SKIP(return, "%s", missing);
}

FIXTURE_TEARDOWN(suspend)
{
	pg_write("/sys/power/pm_test", "none");
	pg_stop();
}

/* kmigrated freezes with everything else, and goes on after it. */
TEST_F_TIMEOUT(suspend, freezer, PG_TIMEOUT)
{
	size_t nr = 4096;
	pid_t pid;
	char *p;
	int i;

	if (pg_write("/sys/power/pm_test", "freezer"))
		SKIP(return, "no freezer test");
	pg_write("/sys/module/suspend/parameters/pm_test_delay", "1");
	/* Slow enough that some is always left to do. */
	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1));
	p = mmap(NULL, nr * pg_page, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	pg_fill(p, nr, 5);
	ASSERT_TRUE(pg_to_slow(p, nr));
	ASSERT_EQ(0, pg_sources(true));
	pid = pg_fork();
	if (!pid)
		for (;;)
			pg_touch(p, nr, 1);
	ASSERT_GT(pid, 0);

	ASSERT_TRUE(pg_wait_until(pg_on_dram(p, nr, 1) > 0));
	ASSERT_LT(pg_on_dram(p, nr, 1), nr);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pg_write("/sys/power/state", "mem"));
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	EXPECT_TRUE(pg_wait_until(pg_on_dram(p, nr, 1) == nr));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_EQ(0, pg_damage(p, nr, 5));
}

int main(int argc, char **argv)
{
	return pg_main(argc, argv, test_harness_run);
}
