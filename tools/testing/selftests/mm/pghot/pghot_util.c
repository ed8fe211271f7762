// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "pghot_util.h"

#define HUGE_SIZE	(2UL << 20)

struct pg_machine pg_m = { .slow = -1 };
size_t pg_page = 4096;

const char * const pg_skip_names[PG_NR_SKIP] = {
	[PG_COLD]	= "cold",
	[PG_GONE]	= "gone",
	[PG_UNMOVABLE]	= "unmovable",
	[PG_DENIED]	= "denied",
	[PG_BUSY]	= "busy",
	[PG_PINNED]	= "pinned",
	[PG_NOSPACE]	= "nospace",
	[PG_RATELIMIT]	= "ratelimit",
	[PG_FAILED]	= "failed",
};

/* ===== Files ===== */

/* The text in @path without the newline at its end; its length or -errno. */
int pg_read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (len < size - 1) {
		n = read(fd, buf + len, size - 1 - len);
		if (n < 0) {
			n = -errno;
			close(fd);
			return n;
		}
		if (!n)
			break;
		len += n;
	}
	close(fd);
	while (len && buf[len - 1] == '\n')
		len--;
	buf[len] = '\0';
	return len;
}

long pg_read(const char *fmt, ...)
{
	char path[PATH_MAX], buf[64];
	va_list ap;
	int err;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);

	err = pg_read_text(path, buf, sizeof(buf));
	return err < 0 ? err : strtol(buf, NULL, 0);
}

int pg_write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

int pg_write(const char *path, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return pg_write_text(path, text);
}

int pg_set(const char *knob, long val)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), PG_DIR "/%s", knob);
	return pg_write(path, "%ld", val);
}

long pg_get(const char *knob)
{
	return pg_read(PG_DIR "/%s", knob);
}

/* Hint faults as the only source, or none. */
int pg_sources(bool on)
{
	return pg_write(PG_DIR "/enabled_sources", on ? "hintfaults" : "off");
}

/* Whoever faults is hot, however slow the machine is. */
int pg_any_hint_fault_is_hot(void)
{
	return pg_write(PG_HINT_DIR "/latency_measure", "faults") ?:
	       pg_write(PG_HINT_DIR "/latency_faults", "%d", 1 << 24);
}

/* The number after @name in a file with lines of "name number". */
long pg_find_line(const char *path, const char *name)
{
	size_t len = strlen(name);
	long val = -ENOENT;
	char line[256];
	FILE *f;

	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, name, len) && isspace(line[len])) {
			val = strtol(line + len, NULL, 10);
			break;
		}
	}
	fclose(f);
	return val;
}

/* A counter of the machine. What CPUs have not added to it yet is added first. */
long pg_vmstat(const char *name)
{
	pg_write("/proc/sys/vm/stat_refresh", "1");
	return pg_find_line("/proc/vmstat", name);
}

/* kB in a node's meminfo. */
long pg_node_stat(int nid, const char *name)
{
	char path[PATH_MAX], line[256], want[64];
	long val = -ENOENT;
	char *at;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", nid);
	snprintf(want, sizeof(want), " %s:", name);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		at = strstr(line, want);
		if (at) {
			val = strtol(at + strlen(want), NULL, 10);
			break;
		}
	}
	fclose(f);
	return val;
}

/* kB that smaps says of the mapping that begins at @addr. */
long pg_smaps(const void *addr, const char *name)
{
	unsigned long start, end;
	size_t len = strlen(name);
	bool found = false;
	long val = -ENOENT;
	char line[512];
	FILE *f;

	f = fopen("/proc/self/smaps", "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
			found = (unsigned long)addr >= start && (unsigned long)addr < end;
			continue;
		}
		if (found && !strncmp(line, name, len) && line[len] == ':') {
			val = strtol(line + len + 1, NULL, 10);
			break;
		}
	}
	fclose(f);
	return val;
}

/* A counter of all slow nodes; one that is away has none. */
static long node_count(const char *name)
{
	long val, sum = 0;
	int nid;

	for (nid = 0; nid < PG_MAX_NODES; nid++) {
		if (!pg_m.is_slow[nid])
			continue;
		val = pg_read(PG_DIR "/nodes/node%d/%s", nid, name);
		if (val > 0)
			sum += val;
	}
	return sum;
}

void pg_count(struct pg_counts *c)
{
	char name[64];
	int i;

	c->success = pg_vmstat("pgpromote_success");
	c->candidate = pg_vmstat("pgpromote_candidate");
	c->migrated = pg_vmstat("numa_pages_migrated");
	c->hint_faults = pg_vmstat("numa_hint_faults");
	c->reported = pg_vmstat("pghot_reported_hintfaults");
	c->recorded = pg_vmstat("pghot_recorded_accesses");
	c->visited = node_count("visited");
	c->candidates = node_count("candidates");
	c->promoted = node_count("promoted");
	for (i = 0; i < PG_NR_SKIP; i++) {
		snprintf(name, sizeof(name), "skipped_%s", pg_skip_names[i]);
		c->skipped[i] = node_count(name);
	}
}

/* Turn the counts that were taken earlier into what has been added since. */
void pg_since(struct pg_counts *c)
{
	struct pg_counts now;
	int i;

	pg_count(&now);
	c->success = now.success - c->success;
	c->candidate = now.candidate - c->candidate;
	c->migrated = now.migrated - c->migrated;
	c->hint_faults = now.hint_faults - c->hint_faults;
	c->reported = now.reported - c->reported;
	c->recorded = now.recorded - c->recorded;
	c->visited = now.visited - c->visited;
	c->candidates = now.candidates - c->candidates;
	c->promoted = now.promoted - c->promoted;
	for (i = 0; i < PG_NR_SKIP; i++)
		c->skipped[i] = now.skipped[i] - c->skipped[i];
}

/* What has been added since, in words, for a failing test to say. */
const char *pg_describe(const struct pg_counts *since)
{
	struct pg_counts c = *since;
	static char buf[512];
	int i, len;

	pg_since(&c);
	len = snprintf(buf, sizeof(buf),
		       "recorded %ld, visited %ld, candidates %ld, promoted %ld, skipped:",
		       c.recorded, c.visited, c.candidates, c.promoted);
	for (i = 0; i < PG_NR_SKIP; i++)
		len += snprintf(buf + len, sizeof(buf) - len, " %s %ld",
				pg_skip_names[i], c.skipped[i]);
	return buf;
}

/* ===== Time ===== */

long long pg_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

void pg_sleep_ms(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

int pg_limit_s(void)
{
	const char *env = getenv("PGHOT_LIMIT_S");

	return env && atoi(env) > 0 ? atoi(env) : 90;
}

struct pg_deadline pg_deadline(void)
{
	return (struct pg_deadline) { pg_now_ms() + pg_limit_s() * 1000LL };
}

bool pg_expired(const struct pg_deadline *d)
{
	return pg_now_ms() > d->end_ms;
}

/* ===== The machine ===== */

/* Nodes or CPUs in a list such as 0-1,4. */
int pg_parse_list(const char *path, bool *set, int size)
{
	char buf[4096], *p = buf;
	int from, to, nr = 0;

	memset(set, 0, size * sizeof(*set));
	if (pg_read_text(path, buf, sizeof(buf)) < 0)
		return 0;
	while (isdigit(*p)) {
		from = strtol(p, &p, 10);
		to = from;
		if (*p == '-')
			to = strtol(p + 1, &p, 10);
		for (; from <= to && from < size; from++) {
			set[from] = true;
			nr++;
		}
		if (*p == ',')
			p++;
	}
	return nr;
}

void pg_find_nodes(void)
{
	static bool mem[PG_MAX_NODES], cpu[PG_MAX_NODES];
	char path[PATH_MAX];
	int nid;

	pg_page = sysconf(_SC_PAGESIZE);
	memset(&pg_m, 0, sizeof(pg_m));
	pg_m.slow = -1;
	pg_parse_list("/sys/devices/system/node/has_memory", mem, PG_MAX_NODES);
	pg_parse_list("/sys/devices/system/node/has_cpu", cpu, PG_MAX_NODES);
	for (nid = 0; nid < PG_MAX_NODES; nid++) {
		if (!mem[nid])
			continue;
		snprintf(path, sizeof(path), PG_DIR "/nodes/node%d", nid);
		if (!access(path, F_OK)) {
			if (pg_m.slow < 0)
				pg_m.slow = nid;
			pg_m.is_slow[nid] = true;
			pg_m.nr_slow++;
			continue;
		}
		pg_m.is_dram[nid] = true;
		if (cpu[nid])
			pg_m.dram[pg_m.nr_dram++] = nid;
	}
}

static bool cpu_set_of(int nid, cpu_set_t *set)
{
	bool cpus[CPU_SETSIZE];
	char path[PATH_MAX];
	int cpu, nr = 0;

	CPU_ZERO(set);
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", nid);
	pg_parse_list(path, cpus, CPU_SETSIZE);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (cpus[cpu]) {
			CPU_SET(cpu, set);
			nr++;
		}
	}
	return nr;
}

/* The first CPU of a node, or -1. */
int pg_cpu_of(int nid)
{
	cpu_set_t set;
	int cpu;

	if (!cpu_set_of(nid, &set))
		return -1;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			return cpu;
	return -1;
}

int pg_run_on(int nid)
{
	cpu_set_t set;

	if (!cpu_set_of(nid, &set))
		return -ENODEV;
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int pg_run_anywhere(void)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

/* ===== Memory ===== */

char *pg_map(size_t nr)
{
	char *p = mmap(NULL, nr * pg_page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* Pages are counted one by one. */
	madvise(p, nr * pg_page, MADV_NOHUGEPAGE);
	return p;
}

void pg_unmap(char *p, size_t nr)
{
	munmap(p, nr * pg_page);
}

/* Move or, with @nid -1, look at pages. Calls @each with the status of each. */
static bool move_pages_to(char *p, size_t nr, size_t step, int nid,
			  void (*each)(int status, void *arg), void *arg)
{
	enum { CHUNK = 1024 };
	int nodes[CHUNK], status[CHUNK];
	void *pages[CHUNK];
	size_t i = 0, n, k;

	while (i < nr) {
		for (n = 0; n < CHUNK && i < nr; n++, i += step) {
			pages[n] = p + i * pg_page;
			nodes[n] = nid;
		}
		if (syscall(SYS_move_pages, 0, n, pages, nid < 0 ? NULL : nodes,
			    status, nid < 0 ? 0 : MPOL_MF_MOVE_ALL) < 0)
			return false;
		for (k = 0; each && k < n; k++)
			each(status[k], arg);
	}
	return true;
}

struct on {
	size_t	found;
	int	nid;		/* -1: any DRAM node */
};

static void look(int status, void *arg)
{
	struct on *on = arg;

	if (status < 0 || status >= PG_MAX_NODES)
		return;
	on->found += on->nid < 0 ? pg_m.is_dram[status] : status == on->nid;
}

/* How many pages are on @nid. */
size_t pg_on(const char *p, size_t nr, size_t step, int nid)
{
	struct on on = { .nid = nid };

	move_pages_to((char *)p, nr, step, -1, look, &on);
	return on.found;
}

size_t pg_on_dram(const char *p, size_t nr, size_t step)
{
	return pg_on(p, nr, step, -1);
}

/*
 * Move pages that are mapped. Pages that CPUs hold back from the LRU are put
 * there first, so they can be isolated from now on.
 */
bool pg_move(char *p, size_t nr, int nid)
{
	int tries;

	/* A page may be busy for a moment. */
	for (tries = 0; tries < 10; tries++) {
		move_pages_to(p, nr, 1, nid, NULL, NULL);
		if (pg_on(p, nr, 1, nid) == nr)
			return true;
		pg_sleep_ms(20);
	}
	return false;
}

/* The same for as many as can be moved at once. */
void pg_move_some(char *p, size_t nr, int nid)
{
	move_pages_to(p, nr, 1, nid, NULL, NULL);
}

bool pg_to_slow(char *p, size_t nr)
{
	return pg_move(p, nr, pg_m.slow);
}

char *pg_map_slow(size_t nr)
{
	char *p = pg_map(nr);

	if (!p)
		return NULL;
	pg_fill(p, nr, 0);
	if (pg_to_slow(p, nr))
		return p;
	pg_unmap(p, nr);
	return NULL;
}

/* Huge pages on the slow node, or NULL. */
char *pg_map_thp(size_t nr_thp)
{
	size_t size = nr_thp * HUGE_SIZE, nr = size / pg_page;
	char *area, *p;
	int tries;

	area = mmap(NULL, size + HUGE_SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return NULL;
	p = (char *)(((uintptr_t)area + HUGE_SIZE - 1) & ~(HUGE_SIZE - 1));
	/* What is left of the area before and after must not grow with it. */
	if (p > area)
		munmap(area, p - area);
	if (area + HUGE_SIZE > p)
		munmap(p + size, area + HUGE_SIZE - p);
	if (madvise(p, size, MADV_HUGEPAGE))
		goto fail;
	pg_fill(p, nr, 0);
	/* A head stands for its folio. */
	for (tries = 0; tries < 10; tries++) {
		move_pages_to(p, nr, HUGE_SIZE / pg_page, pg_m.slow, NULL, NULL);
		if (pg_on(p, nr, 1, pg_m.slow) == nr)
			break;
		pg_sleep_ms(20);
	}
	if (pg_smaps(p, "AnonHugePages") * 1024 == size &&
	    pg_on(p, nr, 1, pg_m.slow) == nr)
		return p;
fail:
	munmap(p, size);
	return NULL;
}

void pg_touch(const char *p, size_t nr, size_t step)
{
	size_t i;

	for (i = 0; i < nr; i += step)
		__atomic_load_n(p + i * pg_page, __ATOMIC_RELAXED);
}

void pg_touch_write(char *p, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		__atomic_store_n(p + i * pg_page, 1, __ATOMIC_RELAXED);
}

/* Touch pages for 20 ms, and all of them once at least. */
void pg_touch_a_while(const char *p, size_t nr, size_t step)
{
	long long end = pg_now_ms() + 20;

	do {
		pg_touch(p, nr, step);
	} while (pg_now_ms() < end);
}

static unsigned int pattern(size_t page, size_t word, unsigned int seed)
{
	return (page * 2654435761u) ^ (word * 40503u) ^ seed;
}

void pg_fill(char *p, size_t nr, unsigned int seed)
{
	size_t i, k, words = pg_page / sizeof(int);

	for (i = 0; i < nr; i++)
		for (k = 0; k < words; k++)
			((unsigned int *)(p + i * pg_page))[k] = pattern(i, k, seed);
}

/* Pages whose contents are not those that pg_fill() wrote. */
size_t pg_damage(const char *p, size_t nr, unsigned int seed)
{
	size_t i, k, words = pg_page / sizeof(int), bad = 0;
	const unsigned int *page;

	for (i = 0; i < nr; i++) {
		page = (const unsigned int *)(p + i * pg_page);
		for (k = 0; k < words; k++) {
			if (page[k] != pattern(i, k, seed)) {
				bad++;
				break;
			}
		}
	}
	return bad;
}

struct node_mask {
	unsigned long bits[PG_MAX_NODES / (8 * sizeof(long))];
};

static struct node_mask make_mask(const int *nids, int nr)
{
	struct node_mask m = {};
	int i, bits = 8 * sizeof(long);

	for (i = 0; i < nr; i++)
		m.bits[nids[i] / bits] |= 1UL << (nids[i] % bits);
	return m;
}

/* A policy of the task; flags may be ORed into @mode. */
int pg_policy(int mode, const int *nids, int nr)
{
	struct node_mask m = make_mask(nids, nr);

	return syscall(SYS_set_mempolicy, mode, nr ? m.bits : NULL,
		       nr ? PG_MAX_NODES : 0) ? -errno : 0;
}

int pg_bind(int nid)
{
	return pg_policy(MPOL_BIND, &nid, 1);
}

int pg_no_policy(void)
{
	return pg_policy(MPOL_DEFAULT, NULL, 0);
}

/* A policy of a mapping. */
int pg_mbind(char *p, size_t nr, int mode, const int *nids, int nr_nids)
{
	struct node_mask m = make_mask(nids, nr_nids);

	return syscall(SYS_mbind, p, nr * pg_page, mode, nr_nids ? m.bits : NULL,
		       nr_nids ? PG_MAX_NODES : 0, 0) ? -errno : 0;
}

/* ===== Scans ===== */

/* Passes of the scan over the caller's address space. */
long pg_scan_seq(void)
{
	static const char name[] = "mm->numa_scan_seq";
	char buf[8192], *at;

	if (pg_read_text("/proc/self/sched", buf, sizeof(buf)) < 0)
		return -ENOENT;
	at = strstr(buf, name);
	at = at ? strchr(at, ':') : NULL;
	return at ? strtol(at + 1, NULL, 10) : -ENOENT;
}

/*
 * Run until the scan has passed over the whole address space, so that the next
 * touch of each page is a hint fault. The first pass that begins here only takes
 * notice of new mappings; when it comes to the third one, the second is complete.
 */
bool pg_arm(void)
{
	struct pg_deadline d = pg_deadline();
	long start = pg_scan_seq();

	if (start < 0)
		return false;
	while (pg_scan_seq() < start + 3)
		if (pg_expired(&d))
			return false;
	return true;
}

/* @rounds hint faults on each page: as much heat, if the epoch does not end. */
bool pg_heat(const char *p, size_t nr, size_t step, int rounds)
{
	while (rounds--) {
		if (!pg_arm())
			return false;
		pg_touch(p, nr, step);
	}
	return true;
}

/* ===== Children ===== */

pid_t pg_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	return 0;
}

/* Wait for a child. True if it ended well. */
bool pg_join(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       !WEXITSTATUS(status);
}
