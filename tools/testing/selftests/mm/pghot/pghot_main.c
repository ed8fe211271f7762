// SPDX-License-Identifier: GPL-2.0
/*
 * What stands around the tests: control groups, and the state of the machine,
 * which is put back after them.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "pghot_util.h"

#define SCHED_DIR	"/sys/kernel/debug/sched/numa_balancing"
#define CGROUP_PREFIX	"pghot-test-"

/* ===== Control groups ===== */

static char cgroup_root[256];

static bool find_cgroup_root(void)
{
	char line[1024], dir[256], type[64];
	FILE *f;

	f = fopen("/proc/mounts", "re");
	if (!f)
		return false;
	while (!cgroup_root[0] && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %255s %63s", dir, type) == 2 &&
		    !strcmp(type, "cgroup2"))
			snprintf(cgroup_root, sizeof(cgroup_root), "%s", dir);
	fclose(f);
	return cgroup_root[0];
}

static const char *cgroup_path(const char *name, const char *file)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/" CGROUP_PREFIX "%s%s%s", cgroup_root,
		 name, file ? "/" : "", file ?: "");
	return path;
}

/* Make a group with controllers for memory and cpuset: its name, or NULL. */
const char *pg_cgroup(const char *name)
{
	if (mkdir(cgroup_path(name, NULL), 0755) && errno != EEXIST)
		return NULL;
	return name;
}

int pg_cgroup_write(const char *name, const char *file, const char *val)
{
	return pg_write_text(cgroup_path(name, file), val);
}

int pg_cgroup_enter(const char *name)
{
	return pg_cgroup_write(name, "cgroup.procs", "0");
}

long pg_cgroup_stat(const char *name, const char *stat)
{
	return pg_find_line(cgroup_path(name, "memory.stat"), stat);
}

static bool cgroup_has(const char *file, const char *controller)
{
	char path[PATH_MAX], buf[512], *save, *word;

	snprintf(path, sizeof(path), "%s/%s", cgroup_root, file);
	if (pg_read_text(path, buf, sizeof(buf)) < 0)
		return false;
	for (word = strtok_r(buf, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (!strcmp(word, controller))
			return true;
	return false;
}

static void remove_cgroups(void)
{
	struct dirent *e;
	const char *name;
	int tries;
	DIR *d;

	d = cgroup_root[0] ? opendir(cgroup_root) : NULL;
	if (!d)
		return;
	while ((e = readdir(d))) {
		if (strncmp(e->d_name, CGROUP_PREFIX, strlen(CGROUP_PREFIX)))
			continue;
		name = e->d_name + strlen(CGROUP_PREFIX);
		pg_cgroup_write(name, "cgroup.kill", "1");
		/* Until those in it are gone. */
		for (tries = 0; tries < 200 && rmdir(cgroup_path(name, NULL)) &&
		     errno == EBUSY; tries++)
			pg_sleep_ms(20);
	}
	closedir(d);
}

/* ===== Begin and end of a test, and of a program ===== */

/* What tests may change. */
static const char * const saved_paths[] = {
	/* The sources go off first, and what was on comes back last. */
	PG_DIR "/freq_threshold",
	PG_DIR "/promote_window_ms",
	PG_DIR "/target_nid",
	PG_DIR "/promote_rate_limit_MBps",
	PG_DIR "/kmigrated_sleep_ms",
	PG_DIR "/kmigrated_batch_nr",
	PG_HINT_DIR "/latency_measure",
	PG_HINT_DIR "/latency_ms",
	PG_HINT_DIR "/latency_faults",
	"/proc/sys/kernel/perf_cpu_time_max_percent",
	"/proc/sys/kernel/perf_event_max_sample_rate",
	PG_DIR "/sources/hwhints/period",
	PG_DIR "/sources/hwhints/sampling_budget",
	PG_DIR "/sources/hwhints/l3miss_only",
	PG_DIR "/sources/hwhints/latency_filter",
	PG_DIR "/sources/hwhints/latency_threshold",
	PG_DIR "/sources/hwhints/look_around",
	"/proc/sys/kernel/numa_balancing",
	"/sys/kernel/mm/numa/demotion_enabled",
	"/proc/sys/vm/percpu_pagelist_high_fraction",
	"/sys/kernel/mm/ksm/run",
	"/sys/kernel/mm/ksm/sleep_millisecs",
	"/sys/kernel/mm/ksm/pages_to_scan",
	"/sys/kernel/mm/ksm/merge_across_nodes",
	"/sys/power/pm_test",
	"/sys/module/suspend/parameters/pm_test_delay",
	SCHED_DIR "/scan_delay_ms",
	SCHED_DIR "/scan_period_min_ms",
	PG_DIR "/enabled_sources",
};

#define NR_SAVED	ARRAY_SIZE(saved_paths)

static char saved[NR_SAVED][128];

static void save_knobs(void)
{
	char *open, *close;
	size_t i;

	for (i = 0; i < NR_SAVED; i++) {
		if (pg_read_text(saved_paths[i], saved[i], sizeof(saved[i])) < 0) {
			saved[i][0] = '\0';
			continue;
		}
		/* Of several words, the one in brackets counts. */
		open = strchr(saved[i], '[');
		close = strchr(saved[i], ']');
		if (open && close) {
			*close = '\0';
			memmove(saved[i], open + 1, close - open);
		}
	}
}

static void restore_knobs(void)
{
	char now[128];
	size_t i;

	for (i = 0; i < NR_SAVED; i++) {
		if (!saved[i][0])
			continue;
		/* Some files, kernel.numa_balancing for one, do more than store. */
		if (pg_read_text(saved_paths[i], now, sizeof(now)) >= 0 &&
		    !strcmp(now, saved[i]))
			continue;
		pg_write_text(saved_paths[i], saved[i]);
	}
}

/* Memory blocks and CPUs that were there before. */
enum { MAX_BLOCKS = 65536 };

static bool block_online[MAX_BLOCKS], cpu_online[CPU_SETSIZE];

static void each_block(void (*fn)(int block, const char *state))
{
	char path[PATH_MAX];
	struct dirent *e;
	int block;
	DIR *d;

	d = opendir("/sys/devices/system/memory");
	if (!d)
		return;
	while ((e = readdir(d))) {
		if (sscanf(e->d_name, "memory%d", &block) != 1 ||
		    block < 0 || block >= MAX_BLOCKS)
			continue;
		snprintf(path, sizeof(path), "/sys/devices/system/memory/%s/state",
			 e->d_name);
		fn(block, path);
	}
	closedir(d);
}

static void save_block(int block, const char *state)
{
	char buf[32];

	block_online[block] = pg_read_text(state, buf, sizeof(buf)) > 0 &&
			      !strcmp(buf, "online");
}

static void restore_block(int block, const char *state)
{
	char buf[32];

	if (block_online[block] && pg_read_text(state, buf, sizeof(buf)) > 0 &&
	    !strcmp(buf, "offline"))
		pg_write_text(state, "online");
}

static void restore_cpus(void)
{
	int cpu;

	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		char path[PATH_MAX];

		if (!cpu_online[cpu])
			continue;
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
		if (!pg_read("%s", path))
			pg_write_text(path, "1");
	}
}

/*
 * Run the tests in a child, and put everything back after it, however it ends.
 */
int pg_main(int argc, char **argv, int (*run)(int argc, char **argv))
{
	bool mine[2] = {};
	static const char * const controllers[2] = { "memory", "cpuset" };
	char path[PATH_MAX];
	int status, i;
	pid_t pid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	pg_find_nodes();
	save_knobs();
	each_block(save_block);
	pg_parse_list("/sys/devices/system/cpu/online", cpu_online, CPU_SETSIZE);

	if (find_cgroup_root()) {
		remove_cgroups();
		for (i = 0; i < 2; i++) {
			if (cgroup_has("cgroup.subtree_control", controllers[i]))
				continue;
			snprintf(path, sizeof(path), "%s/cgroup.subtree_control",
				 cgroup_root);
			mine[i] = !pg_write(path, "+%s", controllers[i]);
		}
	}
	/* In force for address spaces made from here on: many scans in a test. */
	pg_write(SCHED_DIR "/scan_delay_ms", "20");
	pg_write(SCHED_DIR "/scan_period_min_ms", "100");

	/* These end the child; the parent outlives it. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	pid = fork();
	if (!pid) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		exit(run(argc, argv));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = 1 << 8;

	pg_write(PG_DIR "/enabled_sources", "off");
	restore_cpus();
	each_block(restore_block);
	remove_cgroups();
	for (i = 0; i < 2; i++) {
		if (mine[i]) {
			snprintf(path, sizeof(path), "%s/cgroup.subtree_control",
				 cgroup_root);
			pg_write(path, "-%s", controllers[i]);
		}
	}
	restore_knobs();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/*
 * Begin a test: all knobs at values that suit tests, sources off. Returns NULL,
 * or what the machine does not have.
 */
const char *pg_start(int need)
{
	int err = 0;

	if (geteuid())
		return "not root";
	if (access(PG_DIR, F_OK))
		return "no pghot in this kernel";

	pg_find_nodes();
	if (need & PG_NEED_TIERS) {
		if (pg_m.slow < 0)
			return "no lower memory tier on this machine";
		if (!pg_m.nr_dram)
			return "no DRAM node with CPUs on this machine";
	}
	if ((need & PG_NEED_2DRAM) && pg_m.nr_dram < 2)
		return "needs two DRAM nodes with CPUs";
	if ((need & PG_NEED_HINTFAULTS) && access(PG_HINT_DIR, F_OK))
		return "no hint faults in this kernel";
	if ((need & PG_NEED_CGROUP) &&
	    (!cgroup_root[0] ||
	     !cgroup_has("cgroup.subtree_control", "memory") ||
	     !cgroup_has("cgroup.subtree_control", "cpuset")))
		return "no cgroup2 with memory and cpuset";

	pg_stop();
	err |= pg_set("freq_threshold", 1);
	err |= pg_set("promote_window_ms", 60000);
	err |= pg_set("target_nid", -1);
	err |= pg_set("promote_rate_limit_MBps", 65536);
	err |= pg_set("kmigrated_sleep_ms", 20);
	err |= pg_set("kmigrated_batch_nr", 512);
	if (need & PG_NEED_HINTFAULTS) {
		err |= pg_write(PG_HINT_DIR "/latency_measure", "time");
		err |= pg_write(PG_HINT_DIR "/latency_ms", "1000");
		err |= pg_write(PG_HINT_DIR "/latency_faults", "8192");
		err |= pg_write("/proc/sys/kernel/numa_balancing", "0");
	}
	if (!err && (need & PG_NEED_TIERS))
		err = pg_run_on(pg_m.dram[0]);
	return err ? "the knobs cannot be set" : NULL;
}

/* End a test. Cycles under way are over, and all counters final, on return. */
void pg_stop(void)
{
	pg_sources(false);
}
