// SPDX-License-Identifier: GPL-2.0
/*
 * No hot page is lost: what cannot be moved now is moved when it can be, without
 * another touch.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "pghot_util.h"

#define NR	32

#ifndef __NR_memfd_secret
#define __NR_memfd_secret	447
#endif

/* Of mm/gup_test.h, as far as it is needed. */
struct pin_longterm_test {
	__u64 addr;
	__u64 size;
	__u32 flags;
};

#define PIN_LONGTERM_TEST_START	_IOW('g', 7, struct pin_longterm_test)
#define PIN_LONGTERM_TEST_STOP	_IO('g', 8)

FIXTURE(retry)
{
	struct pg_counts c;
	char *p;
};

/*
 * NR candidates that the limit of the rate holds back, and whose heat lasts as
 * long as the test.
 */
FIXTURE_SETUP(retry)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	ASSERT_EQ(0, pg_set("promote_window_ms", 600000));
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	self->p = pg_map_slow(NR);
	ASSERT_NE(NULL, self->p);
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_TRUE(pg_heat(self->p, NR, 1, 1));
}

FIXTURE_TEARDOWN(retry)
{
	pg_stop();
}

static long skipped(const struct pg_counts *since, enum pg_skip why)
{
	struct pg_counts c = *since;

	pg_since(&c);
	return c.skipped[why];
}

/* Whatever held them: it lets go, and they are promoted as they are. */
static void expect_promotion(struct __test_metadata *_metadata, char *p)
{
	/* Nobody touches them: to ask where a page is does not. */
	EXPECT_TRUE(pg_wait_until(pg_on_dram(p, NR, 1) == NR));
}

/* Not at all, while the limit is 0. */
TEST_F_TIMEOUT(retry, rate_limit, PG_TIMEOUT)
{
	pg_count(&self->c);
	EXPECT_TRUE(pg_wait_until(skipped(&self->c, PG_RATELIMIT) >= 4 * NR));
	EXPECT_EQ(NR, pg_on(self->p, NR, 1, pg_m.slow));
	pg_since(&self->c);
	EXPECT_EQ(0, self->c.candidates);
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	expect_promotion(_metadata, self->p);
}

/* Pinned, as for DMA. */
TEST_F_TIMEOUT(retry, pinned, PG_TIMEOUT)
{
	struct pin_longterm_test args = { .size = NR * pg_page, };
	int fd = open("/sys/kernel/debug/gup_test", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		SKIP(return, "no gup_test in debugfs");
	args.addr = (uintptr_t)self->p;
	ASSERT_EQ(0, ioctl(fd, PIN_LONGTERM_TEST_START, &args));

	pg_count(&self->c);
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	EXPECT_TRUE(pg_wait_until(skipped(&self->c, PG_PINNED) >= 2 * NR));
	/* Pages of other programs may go up meanwhile, but not these. */
	EXPECT_EQ(NR, pg_on(self->p, NR, 1, pg_m.slow));
	ASSERT_EQ(0, ioctl(fd, PIN_LONGTERM_TEST_STOP));
	expect_promotion(_metadata, self->p);
}

/* Somebody has a reference: it cannot be migrated. */
TEST_F_TIMEOUT(retry, referenced, PG_TIMEOUT)
{
	struct iovec iov = { self->p, NR * pg_page };
	int fds[2];

	ASSERT_EQ(0, pipe(fds));
	fcntl(fds[1], F_SETPIPE_SZ, 2 * NR * (int)pg_page);
	ASSERT_EQ(NR * pg_page, vmsplice(fds[1], &iov, 1, 0));

	pg_count(&self->c);
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	EXPECT_TRUE(pg_wait_until(skipped(&self->c, PG_FAILED) +
				  skipped(&self->c, PG_BUSY) >= 2 * NR));
	EXPECT_EQ(NR, pg_on(self->p, NR, 1, pg_m.slow));
	pg_since(&self->c);
	EXPECT_EQ(self->c.promoted, self->c.success);
	EXPECT_GE(self->c.candidate, self->c.success);
	close(fds[0]);
	close(fds[1]);
	expect_promotion(_metadata, self->p);
}

struct writer {
	char *area;
	size_t size;
	atomic_int stop;
};

/* Has the lock of the address space for writing nearly all the time, in no need of it. */
static void *lock_address_space(void *arg)
{
	struct writer *w = arg;
	int prot = PROT_READ;

	/* Not in the way of the test, nor of kmigrated, if that can be. */
	pg_run_on(pg_m.dram[pg_m.nr_dram - 1]);
	while (!w->stop) {
		mprotect(w->area, w->size, prot);
		prot ^= PROT_WRITE;
	}
	return NULL;
}

/* A program that changes mappings all the time does not lose the use of DRAM. */
TEST_F_TIMEOUT(retry, changing_mappings, PG_TIMEOUT)
{
	enum { MANY = 1024 };
	struct writer w = { .size = 4096 * pg_page, };
	char *many = pg_map_slow(MANY);
	pthread_t thread;

	ASSERT_NE(NULL, many);
	ASSERT_TRUE(pg_heat(many, MANY, 1, 1));
	/* Never in one VMA with the pages. */
	w.area = mmap(NULL, w.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	ASSERT_NE(MAP_FAILED, w.area);
	pg_fill(w.area, 4096, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, lock_address_space, &w));
	pg_count(&self->c);
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	EXPECT_TRUE(pg_wait_until(pg_on_dram(many, MANY, 1) == MANY));
	/* It is told from the first look where they may go, mostly. */
	EXPECT_LT(skipped(&self->c, PG_BUSY), MANY / 4);
	w.stop = 1;
	pthread_join(thread, NULL);
}

/* Memory that can never be migrated is found out once, not again and again. */
TEST_F_TIMEOUT(retry, secret, PG_TIMEOUT)
{
	int fd = syscall(__NR_memfd_secret, 0);
	char *q;

	if (fd < 0)
		SKIP(return, "no memfd_secret");
	ASSERT_EQ(0, ftruncate(fd, NR * pg_page));
	q = mmap(NULL, NR * pg_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, q);
	ASSERT_EQ(0, pg_bind(pg_m.slow));
	pg_touch_write(q, NR);
	ASSERT_EQ(0, pg_no_policy());
	if (pg_on(q, NR, 1, pg_m.slow) != NR)
		SKIP(return, "memfd_secret does not take pages of the slow node");

	pg_count(&self->c);
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	EXPECT_TRUE(pg_touch_until(q, NR, 1, skipped(&self->c, PG_UNMOVABLE) >= NR));
	pg_touch_a_while(q, NR, 1);
	EXPECT_EQ(0, skipped(&self->c, PG_FAILED));
	EXPECT_EQ(NR, pg_on(q, NR, 1, pg_m.slow));
}

/* Pages that a CPU has not yet put on the LRU. */
TEST_F_TIMEOUT(retry, off_lru, PG_TIMEOUT)
{
	struct pg_counts c;
	char *q;

	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	q = pg_map(4);
	ASSERT_NE(NULL, q);
	ASSERT_EQ(0, pg_bind(pg_m.slow));
	pg_fill(q, 4, 0);
	ASSERT_EQ(0, pg_no_policy());
	ASSERT_EQ(4, pg_on(q, 4, 1, pg_m.slow));
	pg_count(&c);
	ASSERT_TRUE(pg_heat(q, 4, 1, 1));
	EXPECT_TRUE(pg_wait_until(pg_on_dram(q, 4, 1) == 4));
	EXPECT_EQ(0, pg_damage(q, 4, 0));
}

/* A candidate that is freed is forgotten. */
TEST_F_TIMEOUT(retry, freed, PG_TIMEOUT)
{
	enum { MORE = 8192 };
	char *more = pg_map_slow(MORE);

	ASSERT_NE(NULL, more);
	pg_count(&self->c);
	ASSERT_EQ(0, madvise(self->p, NR * pg_page, MADV_DONTNEED));
	/* So much that they do not stay on the list of a CPU. */
	pg_unmap(more, MORE);
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	EXPECT_TRUE(pg_wait_until(skipped(&self->c, PG_GONE) >= NR))
		TH_LOG("%s", pg_describe(&self->c));
}

/* One that is not touched any more cools, and stays. */
TEST_F_TIMEOUT(retry, cooled, PG_TIMEOUT)
{
	pg_count(&self->c);
	ASSERT_EQ(0, pg_set("promote_window_ms", 100));
	EXPECT_TRUE(pg_wait_until(skipped(&self->c, PG_COLD) >= NR));
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 1024));
	/* Long enough for several looks, if there were candidates left. */
	pg_sleep_ms(500);
	EXPECT_EQ(NR, pg_on(self->p, NR, 1, pg_m.slow));
}

int main(int argc, char **argv)
{
	return pg_main(argc, argv, test_harness_run);
}
