// SPDX-License-Identifier: GPL-2.0
/*
 * Accesses that the processor samples, as a source.
 *
 * Needs a processor with such a unit; all but the first test skip elsewhere.
 * Memory is read in a random order, a line here and there: more than caches hold,
 * and nothing that is prefetched.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "pghot_util.h"

#define DIR_HW		PG_DIR "/sources/hwhints"
#define LINE		64

/* 32 MB, of which every fourth page is used. */
#define NR		8192
#define STEP		4
#define NR_HOT		(NR / STEP)

/* A machine that is slow needs long for the last ones. */
#define ALMOST		(NR_HOT - NR_HOT / 64)

/* As many samples as the unit may give. */
#define PERIOD		"5008"

static const char * const ends[] = {
	"hwhint_useful_events", "hwhint_dropped_events", "hwhint_dram_accesses",
	"hwhint_cache_hits", "hwhint_invalid_events", "hwhint_kernel_events",
	"hwhint_denied_events", "hwhint_unrecorded_events",
};

#define NR_ENDS	ARRAY_SIZE(ends)
enum { USEFUL, DROPPED };

struct samples {
	long total;
	long extmem;
	long reported;
	long end[NR_ENDS];
};

static void count_samples(struct samples *s)
{
	size_t i;

	s->total = pg_vmstat("hwhint_total_events");
	s->extmem = pg_vmstat("hwhint_extmem_accesses");
	s->reported = pg_vmstat("pghot_reported_hwhints");
	for (i = 0; i < NR_ENDS; i++)
		s->end[i] = pg_vmstat(ends[i]);
}

/* What came since @s was counted. */
static void samples_since(struct samples *s)
{
	struct samples now;
	size_t i;

	count_samples(&now);
	s->total = now.total - s->total;
	s->extmem = now.extmem - s->extmem;
	s->reported = now.reported - s->reported;
	for (i = 0; i < NR_ENDS; i++)
		s->end[i] = now.end[i] - s->end[i];
}

static long sum_of_ends(const struct samples *s)
{
	long sum = 0;
	size_t i;

	for (i = 0; i < NR_ENDS; i++)
		sum += s->end[i];
	return sum;
}

static int hwhints(bool on)
{
	return pg_write(DIR_HW "/enabled", on ? "1" : "0");
}

static bool unit_is(const char *name)
{
	char unit[64];

	if (pg_read_text(DIR_HW "/unit", unit, sizeof(unit)) < 0)
		return false;
	unit[strcspn(unit, "\n")] = '\0';
	return !strcmp(unit, name);
}

static const char *start(void)
{
	const char *missing = pg_start(PG_NEED_TIERS);

	if (!missing && access(DIR_HW, F_OK))
		missing = "no hardware hints in this kernel";
	if (!missing && unit_is("not present"))
		missing = "this processor has no unit that samples accesses";
	if (missing)
		return missing;
	/* perf does not hold IBS Op where interrupts take long, as in an emulator. */
	pg_write("/proc/sys/kernel/perf_event_max_sample_rate", "100000");
	pg_write("/proc/sys/kernel/perf_cpu_time_max_percent", "0");
	/* A unit without that filter refuses it. */
	pg_write(DIR_HW "/l3miss_only", "1");
	if (pg_write(DIR_HW "/latency_filter", "0") || pg_write(DIR_HW "/look_around", "0") ||
	    pg_write(DIR_HW "/period", PERIOD))
		return "the knobs cannot be set";
	return NULL;
}

static unsigned int rnd_state = 1;

static unsigned int rnd(void)
{
	rnd_state = rnd_state * 1664525 + 1013904223;
	return rnd_state >> 8;
}

static size_t random_line(size_t nr, size_t step)
{
	return rnd() % (nr / step) * step * pg_page + rnd() % (pg_page / LINE) * LINE;
}

/* Read lines of every @step'th page. */
static void read_lines(const char *p, size_t nr, size_t step, long lines)
{
	for (; lines; lines--)
		asm volatile("" : : "r" (p[random_line(nr, step)]) : "memory");
}

static void write_lines(char *p, size_t nr, size_t step, long lines)
{
	for (; lines; lines--) {
		p[random_line(nr, step)] = 1;
		asm volatile("" : : : "memory");
	}
}

#define read_until(p, nr, step, cond)					\
({									\
	struct pg_deadline __d = pg_deadline();				\
	bool __ok;							\
									\
	while (!(__ok = (cond)) && !pg_expired(&__d))			\
		read_lines(p, nr, step, 100000);			\
	__ok;								\
})

/* Reads for ever, on one CPU or on any. */
static pid_t reader(char *p, size_t nr, int cpu)
{
	cpu_set_t set;
	pid_t pid = pg_fork();

	if (pid)
		return pid;
	if (cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	} else {
		pg_run_anywhere();
	}
	for (;;)
		read_lines(p, nr, 1, 100000);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Where there is no unit, files say so, and the source cannot be enabled. */
TEST(absent)
{
	const char *missing = pg_start(PG_NEED_PGHOT);
	struct samples s;

	if (missing)
		SKIP(return, "%s", missing);
	if (access(DIR_HW, F_OK))
		SKIP(return, "no hardware hints in this kernel");
	if (!unit_is("not present"))
		SKIP(return, "this processor has a unit that samples accesses");
	count_samples(&s);
	EXPECT_EQ(-ENODEV, hwhints(true));
	EXPECT_EQ(0, pg_read(DIR_HW "/enabled"));
	EXPECT_EQ(-ENODEV, pg_write(DIR_HW "/period", "10000"));
	EXPECT_EQ(-ENODEV, pg_write(DIR_HW "/l3miss_only", "1"));
	EXPECT_EQ(-ENODEV, pg_write(DIR_HW "/latency_filter", "1"));
	EXPECT_EQ(0, pg_read(DIR_HW "/interrupt_us"));
	samples_since(&s);
	EXPECT_EQ(0, s.total);
}

FIXTURE(hwhints)
{
	char *p;
};

FIXTURE_SETUP(hwhints)
{
	const char *missing = start();

	if (missing)
		SKIP(return, "%s", missing);
	self->p = pg_map_slow(NR);
	ASSERT_NE(NULL, self->p);
}

FIXTURE_TEARDOWN(hwhints)
{
	pg_stop();
}

/* Samples come, each ends once, and what they cost is known. */
TEST_F_TIMEOUT(hwhints, flow, PG_TIMEOUT)
{
	struct samples s;
	long us = pg_read(DIR_HW "/interrupt_us") + pg_read(DIR_HW "/drain_us");

	count_samples(&s);
	/* Nothing comes while the source is disabled. */
	read_lines(self->p, NR, 1, 1000000);
	samples_since(&s);
	EXPECT_EQ(0, s.total);

	count_samples(&s);
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	ASSERT_EQ(0, hwhints(true));
	EXPECT_TRUE(read_until(self->p, NR, 1, pg_vmstat("hwhint_useful_events") -
			       s.end[USEFUL] >= 1000));
	ASSERT_EQ(0, hwhints(false));
	samples_since(&s);
	EXPECT_EQ(s.total, sum_of_ends(&s));
	EXPECT_EQ(s.reported, s.end[USEFUL]);
	EXPECT_GE(s.extmem, s.end[USEFUL]);
	EXPECT_GT(pg_read(DIR_HW "/interrupt_us") + pg_read(DIR_HW "/drain_us"), us);

	/* And nothing comes any more. */
	count_samples(&s);
	read_lines(self->p, NR, 1, 1000000);
	samples_since(&s);
	EXPECT_EQ(0, s.total);
}

/* Stores count as well as loads. */
TEST_F_TIMEOUT(hwhints, stores, PG_TIMEOUT)
{
	struct pg_deadline d = pg_deadline();
	long before = pg_vmstat("hwhint_stores");

	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	ASSERT_EQ(0, hwhints(true));
	while (pg_vmstat("hwhint_stores") < before + 200 && !pg_expired(&d))
		write_lines(self->p, NR, 1, 100000);
	EXPECT_GE(pg_vmstat("hwhint_stores"), before + 200);
	ASSERT_EQ(0, hwhints(false));
}

/* Those pages are promoted that are used, and no others. */
TEST_F_TIMEOUT(hwhints, right_pages, PG_TIMEOUT)
{
	ASSERT_EQ(0, hwhints(true));
	/* The last ones may be long in coming. */
	EXPECT_TRUE(read_until(self->p, NR, STEP,
			       pg_on_dram(self->p, NR, STEP) >= NR_HOT * 3 / 4))
		TH_LOG("%zu of %d on DRAM", pg_on_dram(self->p, NR, STEP), NR_HOT);
	ASSERT_EQ(0, hwhints(false));
	EXPECT_EQ(NR - NR_HOT, pg_on(self->p, NR, 1, pg_m.slow) -
			       pg_on(self->p, NR, STEP, pg_m.slow));
	EXPECT_EQ(0, pg_damage(self->p, NR, 0));
}

/* With looks at page tables around, almost all of them are, and still no others. */
TEST_F_TIMEOUT(hwhints, look_around, PG_TIMEOUT)
{
	ASSERT_EQ(0, pg_write(DIR_HW "/look_around", "1"));
	ASSERT_EQ(0, hwhints(true));
	EXPECT_TRUE(read_until(self->p, NR, STEP, pg_on_dram(self->p, NR, STEP) >= ALMOST))
		TH_LOG("%zu of %d on DRAM", pg_on_dram(self->p, NR, STEP), NR_HOT);
	ASSERT_EQ(0, hwhints(false));
	EXPECT_GT(pg_read(DIR_HW "/look_areas"), 0);
	EXPECT_GT(pg_read(DIR_HW "/look_found"), 0);
	EXPECT_EQ(NR - NR_HOT, pg_on(self->p, NR, 1, pg_m.slow) -
			       pg_on(self->p, NR, STEP, pg_m.slow));
}

/* A task that its policy keeps off DRAM makes nothing hot. */
TEST_F_TIMEOUT(hwhints, denied, PG_TIMEOUT)
{
	long before = pg_vmstat("hwhint_denied_events");
	struct samples s;

	ASSERT_EQ(0, pg_bind(pg_m.slow));
	count_samples(&s);
	ASSERT_EQ(0, hwhints(true));
	EXPECT_TRUE(read_until(self->p, NR, 1,
			       pg_vmstat("hwhint_denied_events") >= before + 200));
	ASSERT_EQ(0, hwhints(false));
	samples_since(&s);
	EXPECT_EQ(s.total, sum_of_ends(&s));
	EXPECT_EQ(0, pg_on_dram(self->p, NR, 1));
	pg_no_policy();
}

/* Fewer samples with a longer period. It can be changed at any time. */
TEST_F_TIMEOUT(hwhints, period, PG_TIMEOUT)
{
	struct samples s, all;
	long dense, sparse;
	pid_t pid;
	int i;

	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	/* Counters are read one by one: only while nothing samples do they add up. */
	count_samples(&all);
	ASSERT_EQ(0, hwhints(true));
	count_samples(&s);
	read_lines(self->p, NR, 1, 2000000);
	samples_since(&s);
	dense = s.total;
	ASSERT_EQ(0, pg_write(DIR_HW "/period", "80000"));
	count_samples(&s);
	read_lines(self->p, NR, 1, 2000000);
	samples_since(&s);
	sparse = s.total;
	EXPECT_GT(sparse, 0);
	EXPECT_GT(dense, 4 * sparse);

	pid = reader(self->p, NR, -1);
	for (i = 0; i < 200; i++) {
		ASSERT_EQ(0, pg_write(DIR_HW "/period", "%d", 5008 + i * 16));
		ASSERT_EQ(5008 + i * 16, pg_read(DIR_HW "/period"));
		if (i % 16 == 0)
			ASSERT_EQ(0, pg_write(DIR_HW "/look_around", "%d", i / 16 % 2));
	}
	end(pid);
	ASSERT_EQ(0, hwhints(false));
	samples_since(&all);
	EXPECT_EQ(all.total, sum_of_ends(&all));
}

/* By itself: much while there is something to be found, little after that. */
TEST_F_TIMEOUT(hwhints, auto_period, PG_TIMEOUT)
{
	char text[64];
	long before;
	pid_t pid;

	/* A slow machine needs more than the default. */
	ASSERT_EQ(0, pg_write(DIR_HW "/sampling_budget", "200"));
	ASSERT_EQ(0, pg_write(DIR_HW "/period", "auto"));
	ASSERT_GT(pg_read_text(DIR_HW "/period", text, sizeof(text)), 0);
	EXPECT_EQ(0, strncmp(text, "auto", 4));
	ASSERT_EQ(0, pg_write(DIR_HW "/look_around", "1"));
	ASSERT_EQ(0, hwhints(true));
	EXPECT_TRUE(read_until(self->p, NR, STEP, pg_on_dram(self->p, NR, STEP) >= ALMOST))
		TH_LOG("%zu of %d on DRAM", pg_on_dram(self->p, NR, STEP), NR_HOT);
	pid = reader(self->p, NR / STEP, -1);
	EXPECT_TRUE(pg_wait_until(({
		before = pg_vmstat("hwhint_total_events");
		pg_sleep_ms(1000);
		pg_vmstat("hwhint_total_events") - before < 200;
	})));
	end(pid);
	ASSERT_EQ(0, hwhints(false));
}

/* What is refused, and that nothing changes by it. */
TEST_F(hwhints, bad_input)
{
	static const struct {
		const char *file, *text;
		int err;
	} cases[] = {
		{ "period", "0", ERANGE }, { "period", "16", ERANGE },
		{ "period", "4992", ERANGE }, { "period", "134217728", ERANGE },
		{ "period", "5009", EINVAL }, { "period", "-1", ERANGE },
		{ "period", "fast", EINVAL }, { "period", "", 0 },
		{ "period", "99999999999999999999", ERANGE },
		{ "period", "10000 10000", EINVAL },
		{ "l3miss_only", "2", ERANGE }, { "l3miss_only", "yes", EINVAL },
		{ "latency_filter", "2", ERANGE }, { "latency_filter", "-1", ERANGE },
		{ "latency_threshold", "0", ERANGE }, { "latency_threshold", "127", ERANGE },
		{ "latency_threshold", "2049", ERANGE }, { "latency_threshold", "200", EINVAL },
		{ "look_around", "2", ERANGE }, { "look_around", "x", EINVAL },
		{ "sampling_budget", "0", ERANGE }, { "sampling_budget", "201", ERANGE },
		{ "period", "automatic", EINVAL },
		{ "enabled", "2", ERANGE }, { "enabled", "on", EINVAL },
	};
	char path[256];
	long before;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(path, sizeof(path), DIR_HW "/%s", cases[i].file);
		before = pg_read("%s", path);
		EXPECT_EQ(-cases[i].err, pg_write_text(path, cases[i].text))
			TH_LOG("%s: '%s'", cases[i].file, cases[i].text);
		EXPECT_EQ(before, pg_read("%s", path));
	}
}

/* All there is to set, while it samples. */
TEST_F(hwhints, good_input)
{
	static const struct {
		const char *file;
		long val;
		bool optional;
	} cases[] = {
		{ "period", 5008, false },
		{ "period", 65536, false },
		{ "period", 1048560, false },
		{ "l3miss_only", 0, false },
		{ "l3miss_only", 1, true },
		{ "latency_threshold", 128, false },
		{ "latency_filter", 1, true },
		{ "latency_threshold", 2048, false },
		{ "latency_threshold", 640, false },
		{ "latency_filter", 0, false },
		{ "look_around", 1, false },
		{ "look_around", 0, false },
	};
	pid_t pid = reader(self->p, NR, -1);
	char path[256];
	size_t i;
	int err;

	ASSERT_EQ(0, hwhints(true));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(path, sizeof(path), DIR_HW "/%s", cases[i].file);
		err = pg_write(path, "%ld", cases[i].val);
		if (cases[i].optional && err == -EOPNOTSUPP)
			continue;
		EXPECT_EQ(0, err);
		EXPECT_EQ(cases[i].val, pg_read("%s", path))
			TH_LOG("%s", cases[i].file);
		pg_sleep_ms(20);
	}
	end(pid);
	ASSERT_EQ(0, hwhints(false));
}

/* CPUs go and come while they are sampled. */
TEST_F_TIMEOUT(hwhints, cpu_hotplug, PG_TIMEOUT)
{
	int cpu = pg_cpu_of(pg_m.dram[pg_m.nr_dram - 1]), round;
	struct samples s, all;
	char path[64];
	pid_t pid;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	if (cpu <= 0 || pg_write(path, "0"))
		SKIP(return, "no CPU can be offlined");
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	count_samples(&all);
	ASSERT_EQ(0, hwhints(true));
	pid = reader(self->p, NR, -1);
	for (round = 0; round < 50; round++) {
		ASSERT_EQ(0, pg_write(path, "1"));
		pg_sleep_ms(round % 5 * 5);
		ASSERT_EQ(0, pg_write(path, "0"));
	}
	end(pid);
	ASSERT_EQ(0, pg_write(path, "1"));
	/* It samples as it did. */
	pid = reader(self->p, NR, cpu);
	count_samples(&s);
	EXPECT_TRUE(pg_wait_until(pg_vmstat("hwhint_useful_events") >= s.end[USEFUL] + 200));
	end(pid);
	ASSERT_EQ(0, hwhints(false));
	samples_since(&all);
	EXPECT_EQ(all.total, sum_of_ends(&all));
}

/* The unit goes on after the machine slept. */
TEST_F_TIMEOUT(hwhints, suspend, PG_TIMEOUT)
{
	long before;

	if (pg_write("/sys/power/pm_test", "core") ||
	    pg_write("/sys/module/suspend/parameters/pm_test_delay", "1"))
		SKIP(return, "needs CONFIG_PM_SLEEP_DEBUG");
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	ASSERT_EQ(0, hwhints(true));
	if (pg_write("/sys/power/state", "mem"))
		SKIP(return, "this machine does not sleep");
	before = pg_vmstat("hwhint_useful_events");
	EXPECT_TRUE(read_until(self->p, NR, 1,
			       pg_vmstat("hwhint_useful_events") >= before + 200));
	ASSERT_EQ(0, hwhints(false));
}

static int ibs_op_event(int cpu, pid_t pid)
{
	struct perf_event_attr attr = {
		.size		= sizeof(attr),
		.type		= pg_read("/sys/bus/event_source/devices/ibs_op/type"),
		.config		= 1 << 19,
		.sample_period	= 10000,
	};

	if ((int)attr.type < 0)
		return -1;
	return syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);
}

static long event_count(int fd)
{
	long long count = 0;

	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : -1;
}

/* Whoever opens an event for ibs_op gets it, and the source comes back after that. */
TEST_F_TIMEOUT(hwhints, perf_first, PG_TIMEOUT)
{
	bool ibs_op = unit_is("ibs_op");
	long gave = pg_read(DIR_HW "/gave_way"), before, us;
	int fd, cpu = pg_cpu_of(pg_m.dram[0]), round;
	long long since;

	fd = ibs_op_event(cpu, -1);
	if (fd < 0)
		SKIP(return, "no ibs_op for perf");
	close(fd);
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	ASSERT_EQ(0, hwhints(true));
	before = pg_vmstat("hwhint_useful_events");
	ASSERT_TRUE(read_until(self->p, NR, 1, pg_vmstat("hwhint_useful_events") > before));

	/* By CPU, and by task. */
	for (round = 0; round < 2; round++) {
		since = pg_now_ms();
		fd = round ? ibs_op_event(-1, 0) : ibs_op_event(cpu, -1);
		ASSERT_GE(fd, 0);
		EXPECT_TRUE(read_until(self->p, NR, 1, event_count(fd) > 0));
		us = pg_now_ms() - since;
		/* A second, and a while for a slow machine to run at all. */
		EXPECT_LT(us, 1000);
		if (ibs_op) {
			EXPECT_TRUE(pg_wait_until(pg_read(DIR_HW "/gave_way") > gave));
			before = pg_vmstat("hwhint_total_events");
			read_lines(self->p, NR, 1, 1000000);
			EXPECT_EQ(before, pg_vmstat("hwhint_total_events"));
			gave = pg_read(DIR_HW "/gave_way");
		} else {
			/* The other unit does not mind. */
			before = pg_vmstat("hwhint_useful_events");
			EXPECT_TRUE(read_until(self->p, NR, 1,
					       pg_vmstat("hwhint_useful_events") > before));
			EXPECT_EQ(gave, pg_read(DIR_HW "/gave_way"));
		}
		close(fd);
		before = pg_vmstat("hwhint_useful_events");
		EXPECT_TRUE(read_until(self->p, NR, 1,
				       pg_vmstat("hwhint_useful_events") > before));
	}
	ASSERT_EQ(0, hwhints(false));
}

/*
 * Who keeps all CPUs busy and lets nobody empty the rings: samples are counted. Where
 * an interrupt takes long, units pause before a ring is full.
 */
TEST_F_TIMEOUT(hwhints, overflow, PG_TIMEOUT)
{
	struct sched_param prio = { .sched_priority = 1 };
	int nr = sysconf(_SC_NPROCESSORS_ONLN), i;
	long paused = pg_read(DIR_HW "/paused");
	pid_t pids[256];
	struct samples s;

	if (nr > 256)
		nr = 256;
	ASSERT_EQ(0, pg_set("promote_rate_limit_MBps", 0));
	/* Many samples, some of which are of misses. */
	ASSERT_EQ(0, pg_write(DIR_HW "/l3miss_only", "0"));
	count_samples(&s);
	ASSERT_EQ(0, hwhints(true));
	for (i = 0; i < nr; i++) {
		pids[i] = pg_fork();
		if (!pids[i]) {
			cpu_set_t set;

			CPU_ZERO(&set);
			CPU_SET(i, &set);
			if (sched_setaffinity(0, sizeof(set), &set) ||
			    sched_setscheduler(0, SCHED_FIFO, &prio))
				_exit(1);
			read_lines(self->p, NR, 1, 20000000);
			_exit(0);
		}
	}
	for (i = 0; i < nr; i++)
		EXPECT_TRUE(pg_join(pids[i]));
	ASSERT_EQ(0, hwhints(false));
	samples_since(&s);
	EXPECT_EQ(s.total, sum_of_ends(&s));
	EXPECT_TRUE(s.end[DROPPED] > 0 || pg_read(DIR_HW "/paused") > paused);
}

/* On and off, while it is used. */
TEST_F_TIMEOUT(hwhints, switched, PG_TIMEOUT)
{
	pid_t pid = reader(self->p, NR, -1);
	struct samples s;
	int i;

	count_samples(&s);
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, hwhints(true));
		pg_sleep_ms(i % 5 * 7);
		ASSERT_EQ(0, hwhints(false));
		EXPECT_EQ(0, pg_get("bytes_in_use"));
	}
	end(pid);
	samples_since(&s);
	EXPECT_GT(s.total, 0);
	EXPECT_EQ(s.total, sum_of_ends(&s));
}

int main(int argc, char **argv)
{
	return pg_main(argc, argv, test_harness_run);
}
