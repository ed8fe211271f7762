// SPDX-License-Identifier: GPL-2.0
/*
 * Memory, CPUs and sources that come and go while pages are promoted.
 */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "pghot_util.h"

#define MEMORY_DIR	"/sys/devices/system/memory"
#define MAX_BLOCKS	4096
#define NR		512

/* Somebody who uses memory of the slow node all the time, and looks after it. */
struct load {
	atomic_long rounds;
	atomic_long damaged;
	atomic_int ready;
};

FIXTURE(hotplug)
{
	struct load *load;
	pid_t pid;
};

static void run_load(struct load *load)
{
	char *p = pg_map(NR);
	unsigned int seed = 0;

	if (!p)
		_exit(1);
	for (;; seed++) {
		pg_fill(p, NR, seed);
		/* As much of it as goes there: the node may just be away. */
		pg_move_some(p, NR, pg_m.slow);
		load->ready = 1;
		pg_touch_a_while(p, NR, 1);
		pg_touch_a_while(p, NR, 1);
		load->damaged += pg_damage(p, NR, seed);
		load->rounds++;
	}
}

FIXTURE_SETUP(hotplug)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	self->load = mmap(NULL, sizeof(*self->load), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->load);
	self->pid = pg_fork();
	if (!self->pid) {
		pg_run_anywhere();
		run_load(self->load);
	}
	ASSERT_GT(self->pid, 0);
	ASSERT_TRUE(pg_wait_until(self->load->ready));
	ASSERT_EQ(0, pg_sources(true));
}

FIXTURE_TEARDOWN(hotplug)
{
	pg_stop();
}

/* All went well for the load, which was there to the end. */
static void check_load(struct __test_metadata *_metadata, struct load *load,
		       pid_t pid)
{
	long rounds = load->rounds;

	EXPECT_TRUE(pg_wait_until(load->rounds >= rounds + 3));
	EXPECT_EQ(0, load->damaged);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A fresh hot set is promoted. */
static void check_promotion(struct __test_metadata *_metadata)
{
	char *p = pg_map_slow(64);
	struct pg_counts c;

	ASSERT_NE(NULL, p);
	pg_count(&c);
	EXPECT_TRUE(pg_touch_until(p, 64, 1, pg_on_dram(p, 64, 1) == 64))
		TH_LOG("%zu of 64 on DRAM; %s", pg_on_dram(p, 64, 1), pg_describe(&c));
	EXPECT_EQ(0, pg_damage(p, 64, 0));
	pg_unmap(p, 64);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)b - *(const int *)a;
}

/* Blocks of a node, the last one first: that is the least used one. */
static int blocks_of(int nid, int *blocks)
{
	char path[PATH_MAX];
	struct dirent *e;
	int nr = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", nid);
	d = opendir(path);
	if (!d)
		return 0;
	while ((e = readdir(d)) && nr < MAX_BLOCKS)
		nr += sscanf(e->d_name, "memory%d", &blocks[nr]) == 1;
	closedir(d);
	qsort(blocks, nr, sizeof(*blocks), by_number);
	return nr;
}

static int set_block(int block, const char *state)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), MEMORY_DIR "/memory%d/state", block);
	return pg_write(path, "%s", state);
}

TEST_F_TIMEOUT(hotplug, memory_blocks, PG_TIMEOUT)
{
	static int blocks[MAX_BLOCKS];
	int i, nr, done = 0, round;
	long before, after;

	nr = blocks_of(pg_m.slow, blocks);
	for (i = 0; i < nr && done < 3; i++) {
		before = pg_get("bytes_in_use");
		ASSERT_GT(before, 0);
		/* What the kernel keeps there for itself does not go away. */
		if (set_block(blocks[i], "offline"))
			continue;
		done++;
		for (round = 0; ; round++) {
			after = pg_get("bytes_in_use");
			EXPECT_LT(after, before);
			ASSERT_EQ(0, set_block(blocks[i], "online"));
			EXPECT_EQ(before, pg_get("bytes_in_use"));
			if (round == 2 || set_block(blocks[i], "offline"))
				break;
		}
	}
	if (!done)
		SKIP(return, "no memory block of the slow node can be offlined");
	TH_LOG("%d blocks went and came back", done);
	check_promotion(_metadata);
	check_load(_metadata, self->load, self->pid);
}

static int set_blocks_online(const int *blocks, int nr, const char *how)
{
	int i, err = 0;

	for (i = 0; i < nr; i++)
		err = err ?: set_block(blocks[i], how);
	return err;
}

/* How the blocks of a node are to come back. */
static const char *online_type(int block)
{
	char path[PATH_MAX], zones[64];

	snprintf(path, sizeof(path), MEMORY_DIR "/memory%d/valid_zones", block);
	if (pg_read_text(path, zones, sizeof(zones)) < 0)
		return "online";
	return strncmp(zones, "Movable", 7) ? "online_kernel" : "online_movable";
}

/* A lower-tier node goes away as a whole and comes back. True if it can. */
static bool cycle_node(struct __test_metadata *_metadata, int nid)
{
	static int blocks[MAX_BLOCKS];
	char path[PATH_MAX];
	const char *how;
	int nr, off, round;
	long before, records;

	snprintf(path, sizeof(path), PG_DIR "/nodes/node%d", nid);
	nr = blocks_of(nid, blocks);
	if (!nr)
		return false;
	how = online_type(blocks[0]);
	records = pg_read("%s/records", path);
	before = pg_get("bytes_in_use");
	for (round = 0; round < 3; round++) {
		for (off = 0; off < nr; off++)
			if (set_block(blocks[off], "offline"))
				break;
		if (off == nr) {
			/* It is a lower-tier node no more. */
			EXPECT_NE(0, access(path, F_OK));
			EXPECT_TRUE(pg_m.nr_slow > 1 || !pg_get("bytes_in_use"));
			EXPECT_LE(pg_get("bytes_in_use"), before - 2 * records);
		}
		ASSERT_EQ(0, set_blocks_online(blocks, off, how));
		EXPECT_EQ(0, access(path, F_OK));
		EXPECT_EQ(before, pg_get("bytes_in_use"));
		EXPECT_EQ(records, pg_read("%s/records", path));
		if (off < nr)
			return false;
	}
	return true;
}

TEST_F_TIMEOUT(hotplug, whole_node, PG_TIMEOUT)
{
	int nid, slow = -1;

	for (nid = 0; nid < PG_MAX_NODES && slow < 0; nid++)
		if (pg_read(PG_DIR "/nodes/node%d/records", nid) > 0)
			slow = cycle_node(_metadata, nid) ? nid : -1;
	if (slow >= 0)
		pg_m.slow = slow;
	check_promotion(_metadata);
	check_load(_metadata, self->load, self->pid);
	if (slow < 0)
		SKIP(return, "no slow node can be offlined as a whole");
}

TEST_F_TIMEOUT(hotplug, cpus, PG_TIMEOUT)
{
	char path[PATH_MAX];
	int cpu, round, nid;

	/* One that is not the first, and can go away. */
	nid = pg_m.dram[pg_m.nr_dram - 1];
	cpu = pg_cpu_of(nid);
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	if (cpu <= 0 || pg_write(path, "0"))
		SKIP(return, "no CPU can be offlined");
	for (round = 0; round < 3; round++) {
		check_promotion(_metadata);
		ASSERT_EQ(0, pg_write(path, "1"));
		check_promotion(_metadata);
		ASSERT_EQ(0, pg_write(path, "0"));
	}
	ASSERT_EQ(0, pg_write(path, "1"));
	check_load(_metadata, self->load, self->pid);
}

/* The source goes off and on, with candidates there and without. */
TEST_F_TIMEOUT(hotplug, source, PG_TIMEOUT)
{
	int round;

	for (round = 0; round < 40; round++) {
		pg_sleep_ms(round % 8 * 10);
		ASSERT_EQ(0, pg_sources(false));
		EXPECT_EQ(0, pg_get("bytes_in_use"));
		pg_sleep_ms(round % 3 * 10);
		ASSERT_EQ(0, pg_sources(true));
		EXPECT_GT(pg_get("bytes_in_use"), 0);
	}
	check_promotion(_metadata);
	check_load(_metadata, self->load, self->pid);
}

/* All knobs change all the time. */
TEST_F_TIMEOUT(hotplug, knobs, PG_TIMEOUT)
{
	static const struct {
		const char *name;
		long val[4];
	} knobs[] = {
		{ "freq_threshold", { 1, 15, 2, 1 } },
		{ "promote_window_ms", { 100, 600000, 3000, 60000 } },
		{ "target_nid", { -1, -1, -1, -1 } },
		{ "promote_rate_limit_MBps", { 0, 1, 1048576, 1024 } },
		{ "kmigrated_sleep_ms", { 10, 200, 50, 20 } },
		{ "kmigrated_batch_nr", { 1, 512, 7, 512 } },
	};
	int round, i;
	long val;

	for (round = 0; round < 40; round++) {
		for (i = 0; i < ARRAY_SIZE(knobs); i++) {
			val = knobs[i].val[round % 4];
			if (!strcmp(knobs[i].name, "target_nid") && round % 2)
				val = pg_m.dram[round / 2 % pg_m.nr_dram];
			ASSERT_EQ(0, pg_set(knobs[i].name, val));
			EXPECT_EQ(val, pg_get(knobs[i].name));
		}
		pg_sleep_ms(25);
	}
	check_promotion(_metadata);
	check_load(_metadata, self->load, self->pid);
}

int main(int argc, char **argv)
{
	return pg_main(argc, argv, test_harness_run);
}
