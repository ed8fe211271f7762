/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of pghot share.
 *
 * A test brings pages to the slow node with move_pages(), which leaves no policy
 * behind, touches them, and asks move_pages() where they are. "Touch until" loops
 * use up CPU time, as the scan for hint faults counts that; they end with what
 * they wait for, or fail after pg_limit_s() seconds, which is far longer than
 * anything takes, also on a debug kernel.
 *
 * All knobs are saved before the first test of a program and written back after
 * its last one, by a process that no failing test can take down.
 */
#ifndef PGHOT_UTIL_H
#define PGHOT_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kselftest.h"

#define PG_DIR		"/sys/kernel/mm/pghot"
#define PG_HINT_DIR	PG_DIR "/sources/hintfaults"
#define PG_MAX_NODES	1024

/* For TEST_F_TIMEOUT: longer than some pg_limit_s() in a row. */
#define PG_TIMEOUT	600

/* What a test needs, for pg_start(). */
#define PG_NEED_PGHOT		0
#define PG_NEED_TIERS		0x1	/* a slow node and DRAM with CPUs */
#define PG_NEED_HINTFAULTS	0x2
#define PG_NEED_CGROUP		0x4	/* cgroup2, memory and cpuset */
#define PG_NEED_2DRAM		0x8	/* two DRAM nodes with CPUs */

#define PG_NEED_PROMOTION	(PG_NEED_TIERS | PG_NEED_HINTFAULTS)

/* Why a candidate was not promoted, in the order of names of pg_skip_names. */
enum pg_skip {
	PG_COLD, PG_GONE, PG_UNMOVABLE, PG_DENIED, PG_BUSY, PG_PINNED,
	PG_NOSPACE, PG_RATELIMIT, PG_FAILED, PG_NR_SKIP
};

extern const char * const pg_skip_names[PG_NR_SKIP];

/* All counters of pghot, and those of NUMA balancing that it must keep right. */
struct pg_counts {
	long success;		/* pgpromote_success */
	long candidate;		/* pgpromote_candidate */
	long migrated;		/* numa_pages_migrated */
	long hint_faults;	/* numa_hint_faults */
	long reported;		/* pghot_reported_hintfaults */
	long recorded;		/* pghot_recorded_accesses */
	long visited;		/* of the slow nodes, as what follows */
	long candidates;
	long promoted;
	long skipped[PG_NR_SKIP];
};

/* The machine. */
struct pg_machine {
	int slow;			/* a lower-tier node, or -1 */
	int nr_slow;
	int nr_dram;			/* nodes in @dram */
	int dram[PG_MAX_NODES];		/* DRAM nodes that have CPUs */
	bool is_dram[PG_MAX_NODES];	/* all DRAM nodes */
	bool is_slow[PG_MAX_NODES];	/* all lower-tier nodes */
};

extern struct pg_machine pg_m;
extern size_t pg_page;

int pg_main(int argc, char **argv, int (*run)(int argc, char **argv));
const char *pg_start(int need);
void pg_stop(void);
int pg_limit_s(void);

/* Files: a number, or a negative error number. */
__printf(1, 2) long pg_read(const char *fmt, ...);
int pg_read_text(const char *path, char *buf, size_t size);
__printf(2, 3) int pg_write(const char *path, const char *fmt, ...);
int pg_write_text(const char *path, const char *text);
int pg_set(const char *knob, long val);
long pg_get(const char *knob);
int pg_sources(bool on);
int pg_any_hint_fault_is_hot(void);
long pg_find_line(const char *path, const char *name);
int pg_parse_list(const char *path, bool *set, int size);
long pg_vmstat(const char *name);
long pg_node_stat(int nid, const char *name);
long pg_smaps(const void *addr, const char *name);
void pg_count(struct pg_counts *c);
void pg_since(struct pg_counts *c);
const char *pg_describe(const struct pg_counts *since);

/* Where it runs. */
void pg_find_nodes(void);
int pg_run_on(int nid);
int pg_run_anywhere(void);
int pg_cpu_of(int nid);

/* Memory: @nr pages at @p, or every @step'th of them, the first one included. */
char *pg_map(size_t nr);
char *pg_map_slow(size_t nr);
char *pg_map_thp(size_t nr_thp);
void pg_unmap(char *p, size_t nr);
bool pg_move(char *p, size_t nr, int nid);
bool pg_to_slow(char *p, size_t nr);
void pg_move_some(char *p, size_t nr, int nid);
size_t pg_on(const char *p, size_t nr, size_t step, int nid);
size_t pg_on_dram(const char *p, size_t nr, size_t step);
void pg_touch(const char *p, size_t nr, size_t step);
void pg_touch_write(char *p, size_t nr);
void pg_fill(char *p, size_t nr, unsigned int seed);
size_t pg_damage(const char *p, size_t nr, unsigned int seed);
int pg_bind(int nid);
int pg_policy(int mode, const int *nids, int nr);
int pg_mbind(char *p, size_t nr, int mode, const int *nids, int nr_nids);
int pg_no_policy(void);

/* Scans. */
long pg_scan_seq(void);
bool pg_arm(void);
bool pg_heat(const char *p, size_t nr, size_t step, int rounds);

/* Control groups below the root, gone at the end of the program. */
const char *pg_cgroup(const char *name);
int pg_cgroup_enter(const char *name);
int pg_cgroup_write(const char *name, const char *file, const char *val);
long pg_cgroup_stat(const char *name, const char *stat);

/* A child that ends with its parent at the latest. Returns as fork() does. */
pid_t pg_fork(void);
bool pg_join(pid_t pid);

/* What is waited for "in the end". */
struct pg_deadline {
	long long end_ms;
};

long long pg_now_ms(void);
void pg_sleep_ms(int ms);
struct pg_deadline pg_deadline(void);
bool pg_expired(const struct pg_deadline *d);
void pg_touch_a_while(const char *p, size_t nr, size_t step);

/* Touch pages until @cond is true. False if that never was so. */
#define pg_touch_until(p, nr, step, cond)				\
({									\
	struct pg_deadline __d = pg_deadline();				\
	bool __ok;							\
									\
	while (!(__ok = (cond)) && !pg_expired(&__d))			\
		pg_touch_a_while(p, nr, step);				\
	__ok;								\
})

/* Wait until @cond is true. False if that never was so. */
#define pg_wait_until(cond)						\
({									\
	struct pg_deadline __d = pg_deadline();				\
	bool __ok;							\
									\
	while (!(__ok = (cond)) && !pg_expired(&__d))			\
		pg_sleep_ms(10);					\
	__ok;								\
})

#endif /* PGHOT_UTIL_H */
