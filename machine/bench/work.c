// SPDX-License-Identifier: GPL-2.0
/*
 * work: the workloads of the bench, and what is measured about them in the guest.
 *
 *	chase	threads follow a chain of pointers through the lines of hot pages, in
 *		random order. The hot set consists of runs of --run-pages pages; with
 *		--sets, it is another one every --set-ms
 *	zipf	threads read lines of all pages, page of rank r in proportion to
 *		1 / r^0.99
 *	chunks	each thread chooses a chunk of the buffer, reads lines of it at random
 *		for a while, and chooses another one
 *	llm	threads walk through the weights of a model of many layers with eight
 *		experts each: first with much to compute for each line (a prompt is
 *		read), then with little (text is written)
 *
 * The buffer is anonymous memory, without or with huge pages, or a mapped file. It
 * starts on the slow node, or, in chunks and llm, wherever memory is found. No
 * policy keeps it there.
 *
 * Where the pages are is looked up in /proc/self/pagemap by a thread that shares no
 * CPU with those that are measured. Which of them are hot is nobody's word here: the
 * machine's emulator writes down who accesses which page frame, and the time stamp
 * counter, which is in all files, is its clock.
 *
 * Files written, all named after --out:
 *
 *	PREFIX.samples		see write_sample()
 *	PREFIX.pages		see look()
 *	PREFIX.sets		a byte per page: the hot set that it is in, 0 for none.
 *				What the workload means to do
 *	PREFIX.ranges		"node first-pfn end-pfn" lines
 *	PREFIX.result		"name value" lines
 *	PREFIX.{vmstat,cpu}-{before,after}	counters, and CPU time in ns
 *	PREFIX.vmstat-start	counters before there was a buffer
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/mempolicy.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include "workload/pages.h"

#define LINE		64UL
#define LINES		(PAGE / LINE)
#define HUGE		(2UL << 20)
#define MAX_THREADS	8
#define MAX_SETS	64
#define STEPS_AT_ONCE	512	/* between two looks at what the others say */

enum mode { CHASE, ZIPF, CHUNKS, LLM };
static const char * const mode_names[] = { "chase", "zipf", "chunks", "llm" };

static struct {
	enum mode mode;
	unsigned long buffer_mb, hot_mb, run_pages, sets, set_ms;
	unsigned long chunk_mb, visit;
	unsigned long layers, compute, batch, prefill_ms;
	unsigned long hog_mb;
	unsigned long threads, seconds_ms, look_ms, sample_ms, seed;
	unsigned long first_cpu;
	int slow, dram, hog_node;
	bool ideal, huge, anywhere;
	const char *file, *on, *out;
} opt = {
	.buffer_mb = 256, .hot_mb = 64, .run_pages = 1, .sets = 1, .set_ms = 15000,
	.chunk_mb = 4, .visit = 1000000,
	.layers = 8, .compute = 1000, .batch = 512, .prefill_ms = 10000,
	.threads = 2, .seconds_ms = 10000, .look_ms = 1000, .sample_ms = 250, .seed = 1,
	.slow = 2, .dram = 0, .hog_node = 1,
	.out = "work",
};

static unsigned long nr_pages, hot_pages;
static char *buf;
static unsigned char *set_of;		/* of each page, 0 for none */

static struct worker {
	pthread_t thread;
	void **start[MAX_SETS];
	uint64_t random;
	unsigned long steps;		/* lines read */
	struct rusage usage;
} __attribute__((aligned(128))) workers[MAX_THREADS];

static bool go, stop;
static unsigned long current_set, phase;
static void *volatile sink;

static void *alloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		err(1, "calloc");
	return p;
}

static FILE *create(const char *what)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s.%s", opt.out, what);
	f = fopen(path, "w");
	if (!f)
		err(1, "%s", path);
	return f;
}

static void finish(FILE *f, const char *what)
{
	if (ferror(f) || fclose(f))
		err(1, "%s.%s", opt.out, what);
}

/* ===== Threads ===== */

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void count(struct worker *w, unsigned long n)
{
	__atomic_store_n(&w->steps, w->steps + n, __ATOMIC_RELAXED);
}

static void chase(struct worker *w)
{
	unsigned long set = 0, now_set;
	void **p = w->start[0];
	int i;

	while (!stopped()) {
		now_set = __atomic_load_n(&current_set, __ATOMIC_RELAXED);
		if (now_set != set) {
			set = now_set;
			p = w->start[set];
		}
		for (i = 0; i < STEPS_AT_ONCE; i += 8)
			p = *(void **)*(void **)*(void **)*(void **)*(void **)*(void **)*(void **)*p;
		count(w, STEPS_AT_ONCE);
	}
	sink = p;
}

/*
 * A line of memory is all zero here. What is read is added to the random number, so
 * that the next address is not known before: there is one access at a time.
 */
static inline uint64_t next_random(uint64_t x, const char *line)
{
	return (x + *(const volatile uint64_t *)line) * 6364136223846793005ULL +
		1442695040888963407ULL;
}

#define QUANTILES	4096
static uint32_t quantile[QUANTILES + 1];	/* rank below which i / QUANTILES are */

static void make_quantiles(void)
{
	double sum = 0, part = 0;
	unsigned long r, i = 0;

	for (r = 0; r < nr_pages; r++)
		sum += pow(r + 1, -0.99);
	for (r = 0; r < nr_pages; r++) {
		while (i <= QUANTILES && part >= sum * i / QUANTILES)
			quantile[i++] = r;
		part += pow(r + 1, -0.99);
	}
	while (i <= QUANTILES)
		quantile[i++] = nr_pages;
}

/* A permutation of the pages: the number of pages is a power of two. */
static inline uint64_t page_of_rank(uint64_t rank)
{
	const uint64_t mask = nr_pages - 1;
	const int half = __builtin_ctzl(nr_pages) / 2;

	rank = (rank * 0x9e3779b1 + opt.seed * 0x5bd1e995) & mask;
	rank ^= rank >> half;
	rank = (rank * 0x85ebca6b) & mask;
	return rank ^ (rank >> half);
}

static void zipf(struct worker *w)
{
	uint64_t x = w->random, bucket, rank;
	const char *line = buf;
	int i;

	while (!stopped()) {
		for (i = 0; i < STEPS_AT_ONCE; i++) {
			x = next_random(x, line);
			bucket = x >> 52;
			rank = quantile[bucket] + ((((x >> 20) & 0xffffffff) *
				(quantile[bucket + 1] - quantile[bucket])) >> 32);
			line = buf + page_of_rank(rank) * PAGE + ((x >> 12) % LINES) * LINE;
		}
		count(w, STEPS_AT_ONCE);
	}
	sink = (void *)x;
}

static void chunks(struct worker *w)
{
	const unsigned long lines = (opt.chunk_mb << 20) / LINE;
	const unsigned long nr = opt.buffer_mb / opt.chunk_mb;
	uint64_t x = w->random, left = 0;
	const char *line = buf, *chunk = buf;
	int i;

	while (!stopped()) {
		if (!left) {
			x = next_random(x, line);
			chunk = buf + (((x >> 32) * nr) >> 32) * (opt.chunk_mb << 20);
			left = opt.visit;
		}
		for (i = 0; i < STEPS_AT_ONCE; i++) {
			x = next_random(x, line);
			line = chunk + (((x >> 32) * lines) >> 32) * LINE;
		}
		left -= left < STEPS_AT_ONCE ? left : STEPS_AT_ONCE;
		count(w, STEPS_AT_ONCE);
	}
	sink = (void *)x;
}

/* ===== The model ===== */

#define EXPERTS		8

/* How often experts are asked, of 256; two different ones for each layer. */
static const unsigned char popularity[EXPERTS] = { 77, 54, 38, 27, 21, 16, 13, 10 };

static pthread_barrier_t barrier;
static bool last_token;			/* written by one thread between barriers */
static unsigned char ask[256][2];	/* layer -> experts, for this token */

static int choose_expert(uint64_t *x)
{
	int i, n;

	*x = *x * 6364136223846793005ULL + 1442695040888963407ULL;
	n = *x >> 56;
	for (i = 0; i < EXPERTS - 1 && n >= popularity[i]; i++)
		n -= popularity[i];
	return i;
}

/* This thread's part of an expert: read each line, and compute with it. */
static uint64_t walk(struct worker *w, unsigned long layer, int expert, unsigned long compute)
{
	const unsigned long size = (opt.buffer_mb << 20) / opt.layers / EXPERTS;
	const unsigned long part = size / opt.threads / LINE * LINE;
	const char *line = buf + (layer * EXPERTS + (expert + layer) % EXPERTS) * size +
		(w - workers) * part;
	const char *end = line + part;
	unsigned long n = 0, i;
	uint64_t x = 1;

	for (; line < end && !stopped(); line += LINE) {
		x += *(const volatile uint64_t *)line;
		for (i = compute; i; i--)
			asm volatile("" : "+r" (x));
		if (!(++n % STEPS_AT_ONCE))
			count(w, STEPS_AT_ONCE);
	}
	count(w, n % STEPS_AT_ONCE);
	return x;
}

static void llm(struct worker *w)
{
	/* Two instructions for each turn of the loop */
	const unsigned long prefill = opt.compute / 2, decode = 4;
	uint64_t x = opt.seed, sum = 0;
	unsigned long l;
	int e;

	for (;;) {
		if (w == workers) {
			last_token = stopped();
			for (l = 0; l < opt.layers; l++) {
				ask[l][0] = choose_expert(&x);
				do {
					ask[l][1] = choose_expert(&x);
				} while (ask[l][1] == ask[l][0]);
			}
		}
		pthread_barrier_wait(&barrier);
		if (last_token)
			break;
		for (l = 0; l < opt.layers; l++) {
			if (__atomic_load_n(&phase, __ATOMIC_RELAXED) == 0) {
				/* Some of the many tokens ask each expert. */
				for (e = 0; e < EXPERTS; e++)
					sum += walk(w, l, e, prefill);
			} else {
				for (e = 0; e < 2; e++)
					sum += walk(w, l, ask[l][e], decode);
			}
		}
		pthread_barrier_wait(&barrier);
	}
	sink = (void *)sum;
}

static void *work(void *arg)
{
	static void (* const run[])(struct worker *) = { chase, zipf, chunks, llm };
	struct worker *w = arg;

	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		usleep(1000);
	run[opt.mode](w);
	getrusage(RUSAGE_THREAD, &w->usage);
	return NULL;
}

/* All that is not measured, and what we start, stays off the workers' CPUs. */
static void stay_away(void)
{
	unsigned long nr = sysconf(_SC_NPROCESSORS_ONLN), i;
	cpu_set_t cpus;

	if (opt.first_cpu + opt.threads > nr)
		errx(1, "%lu threads from CPU %lu on need more CPUs", opt.threads, opt.first_cpu);
	CPU_ZERO(&cpus);
	for (i = 0; i < nr; i++)
		if (i < opt.first_cpu || i >= opt.first_cpu + opt.threads)
			CPU_SET(i, &cpus);
	if (!CPU_COUNT(&cpus))
		warnx("no CPU is left for the measurement: it disturbs what it measures");
	else if (sched_setaffinity(0, sizeof(cpus), &cpus))
		err(1, "sched_setaffinity");
}

static void start_workers(void)
{
	pthread_attr_t attr;
	unsigned long i;
	cpu_set_t cpus;

	pthread_barrier_init(&barrier, NULL, opt.threads);
	for (i = 0; i < opt.threads; i++) {
		workers[i].random = rnd();
		CPU_ZERO(&cpus);
		CPU_SET(opt.first_cpu + i, &cpus);
		if (pthread_attr_init(&attr) ||
		    pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus) ||
		    pthread_create(&workers[i].thread, &attr, work, &workers[i]))
			errx(1, "cannot start a thread on CPU %lu", opt.first_cpu + i);
	}
}

static unsigned long all_steps(void)
{
	unsigned long sum = 0, i;

	for (i = 0; i < opt.threads; i++)
		sum += __atomic_load_n(&workers[i].steps, __ATOMIC_RELAXED);
	return sum;
}

/* ===== The buffer ===== */

static void allocate_on(int node)
{
	unsigned long mask = node < 0 ? 0 : 1UL << node;

	if (syscall(__NR_set_mempolicy, node < 0 ? MPOL_DEFAULT : MPOL_BIND,
		    node < 0 ? NULL : &mask, node < 0 ? 0 : sizeof(mask) * 8))
		err(1, "set_mempolicy: node %d", node);
}

/* Memory of others, which reclaim cannot move. */
static void fill_node(void)
{
	size_t len = opt.hog_mb << 20;
	char *hog;

	if (!len)
		return;
	allocate_on(opt.hog_node);
	hog = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_LOCKED, -1, 0);
	if (hog == MAP_FAILED)
		err(1, "no %lu MB on node %d", opt.hog_mb, opt.hog_node);
	allocate_on(-1);
}

static void map_buffer(void)
{
	size_t len = opt.buffer_mb << 20;
	int fd;

	if (opt.file) {
		fd = open(opt.file, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (fd < 0 || ftruncate(fd, len))
			err(1, "%s", opt.file);
		buf = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (buf == MAP_FAILED)
			err(1, "mmap %s", opt.file);
		/* No readahead: it would bring neighbours along, in large folios. */
		if (madvise(buf, len, MADV_RANDOM))
			err(1, "madvise");
		close(fd);
		return;
	}
	buf = mmap(NULL, len + HUGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED)
		err(1, "mmap");
	/* The rest, of less than a huge page, is never touched. */
	buf = (char *)(((uintptr_t)buf + HUGE - 1) & ~(HUGE - 1));
	if (madvise(buf, len, opt.huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) && opt.huge)
		err(1, "madvise: huge pages");
}

/* Pages in hot sets, others, or both */
static void touch(bool hot, bool cold)
{
	unsigned long i;

	for (i = 0; i < nr_pages; i++)
		if (set_of[i] ? hot : cold)
			*(volatile uint64_t *)(buf + i * PAGE) = 0;
}

/*
 * While a policy holds, nothing but the buffer is allocated. Pages are touched in
 * their order, or what is hot would lie together in physical memory, which is not so
 * on a real machine and would make it too easy for who looks at that.
 */
static void place_buffer(void)
{
	if (opt.anywhere) {
		touch(true, true);
		return;
	}
	if (opt.ideal) {
		allocate_on(opt.dram);
		touch(true, false);
	}
	allocate_on(opt.slow);
	touch(!opt.ideal, true);
	allocate_on(-1);
}

/* Hot sets that share no page, of runs that do not overlap. */
static void choose_hot(void)
{
	unsigned long slots = nr_pages / opt.run_pages, want = hot_pages / opt.run_pages;
	unsigned long i, set;
	uint32_t *order;

	if (opt.mode == ZIPF) {
		for (i = 0; i < hot_pages; i++)
			set_of[page_of_rank(i)] = 1;
		return;
	}
	if (opt.mode != CHASE)
		return;
	order = numbers(slots);
	shuffle(order, slots);
	for (set = 0; set < opt.sets; set++)
		for (i = 0; i < want; i++)
			memset(set_of + order[set * want + i] * opt.run_pages, set + 1,
			       opt.run_pages);
	free(order);
}

static void make_chain(unsigned long set)
{
	unsigned long n = 0, i, nr = hot_pages * LINES;
	uint32_t *pages = alloc(hot_pages, sizeof(*pages)), *order;
	void **p, **prev;

	for (i = 0; i < nr_pages; i++)
		if (set_of[i] == set + 1)
			pages[n++] = i;
	order = numbers(nr);
	shuffle(order, nr);
#define LINE_OF(i) ((void **)(buf + pages[order[i] / LINES] * PAGE + \
			      order[i] % LINES * LINE))
	prev = LINE_OF(nr - 1);
	for (i = 0; i < nr; i++) {
		p = LINE_OF(i);
		*prev = p;
		prev = p;
	}
	for (i = 0; i < opt.threads; i++)
		workers[i].start[set] = LINE_OF(i * nr / opt.threads);
#undef LINE_OF
	free(order);
	free(pages);
}

/* ===== Observation ===== */

static int pagemap_fd;
static uint32_t *frames;	/* where each page was found last, 0: not there */

struct look_head {
	uint32_t magic;		/* "PMAP" */
	uint32_t nr;		/* of changes that follow */
	uint64_t tsc;		/* when the look began */
	uint64_t tsc_end;
	double seconds;		/* since the start */
};

/*
 * Where the pages are, as changes since the last look: (page, frame) pairs of 32-bit
 * numbers after a head. Reading pagemap touches none of them.
 */
static void look(FILE *f, double seconds)
{
	static uint64_t entries[2048];
	static uint32_t changes[2 * 2048];
	static long head_at;
	struct look_head head = { 0x50414d50, 0, __rdtsc(), 0, seconds };
	unsigned long i, j, n, nr;
	uint32_t pfn;

	head_at = ftell(f);
	fwrite(&head, sizeof(head), 1, f);
	for (i = 0; i < nr_pages; i += n) {
		n = nr_pages - i < 2048 ? nr_pages - i : 2048;
		if (pread(pagemap_fd, entries, n * 8,
			  ((uintptr_t)buf / PAGE + i) * 8) != (ssize_t)(n * 8))
			err(1, "/proc/self/pagemap");
		for (nr = 0, j = 0; j < n; j++) {
			/* A page that is being moved stays where it was. */
			if (!(entries[j] & PM_PRESENT))
				continue;
			pfn = entries[j] & PM_PFN;
			if (!pfn)
				errx(1, "pagemap shows no page frames: run this as root");
			if (pfn == frames[i + j])
				continue;
			frames[i + j] = pfn;
			changes[2 * nr] = i + j;
			changes[2 * nr++ + 1] = pfn;
		}
		fwrite(changes, 8, nr, f);
		head.nr += nr;
	}
	head.tsc_end = __rdtsc();
	fseek(f, head_at, SEEK_SET);
	fwrite(&head, sizeof(head), 1, f);
	fseek(f, 0, SEEK_END);
	if (ferror(f))
		err(1, "%s.pages", opt.out);
}

static void copy_vmstat(const char *what)
{
	FILE *in, *f = create(what);
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY);
	char line[256];

	/* CPUs add up by themselves and tell later: have them tell now. */
	if (fd < 0 || write(fd, "1", 1) != 1)
		err(1, "/proc/sys/vm/stat_refresh");
	close(fd);
	in = fopen("/proc/vmstat", "r");
	if (!in)
		err(1, "/proc/vmstat");
	while (fgets(line, sizeof(line), in))
		fputs(line, f);
	fclose(in);
	finish(f, what);
}

static bool read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "r");
	bool ok = f && fgets(line, size, f);

	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
	return ok;
}

/* CPU time of kernel threads by name, and of interrupts, in ns. */
static void copy_cpu(const char *what)
{
	unsigned long user, nice, system, idle, iowait, irq, softirq;
	FILE *f = create(what);
	DIR *d = opendir("/proc");
	char path[300], name[64], line[256];
	struct dirent *e;

	if (!d)
		err(1, "/proc");
	while ((e = readdir(d))) {
		if (!isdigit(e->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		if (!read_line(path, name, sizeof(name)) || name[0] != 'k')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/schedstat", e->d_name);
		if (read_line(path, line, sizeof(line)))
			fprintf(f, "%s/%s %lu\n", name, e->d_name, strtoul(line, NULL, 10));
	}
	closedir(d);
	if (!read_line("/proc/stat", line, sizeof(line)) ||
	    sscanf(line, "cpu %lu %lu %lu %lu %lu %lu %lu", &user, &nice, &system, &idle, &iowait,
		   &irq, &softirq) != 7)
		errx(1, "/proc/stat is not as expected");
	fprintf(f, "irq %lu\n", irq * (1000000000 / sysconf(_SC_CLK_TCK)));
	fprintf(f, "softirq %lu\n", softirq * (1000000000 / sysconf(_SC_CLK_TCK)));
	finish(f, what);
}

/* ===== The run ===== */

static pid_t on_pid;

/*
 * What switches the promoter on. Without a copy of our page tables, whose pages
 * would all become read-only.
 */
static void switch_on(void)
{
	char *argv[] = { "sh", (char *)opt.on, NULL };

	if (opt.on && posix_spawn(&on_pid, "/bin/sh", NULL, NULL, argv, environ))
		errx(1, "cannot start %s", opt.on);
}

static void check_switched_on(void)
{
	int status;

	if (!on_pid || waitpid(on_pid, &status, WNOHANG) != on_pid)
		return;
	on_pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		errx(1, "the promoter could not be switched on, see above");
}

/* Lines read, and what was going on meanwhile. */
static void write_sample(FILE *f, double t)
{
	fprintf(f, "%.4f %llu %lu %lu\n", t, (unsigned long long)__rdtsc(), all_steps(),
		opt.mode == LLM ? phase : current_set);
}

static void *watch(void *arg)
{
	const struct sched_param prio = { .sched_priority = 1 };
	double start, t, due = 0, look_due = 0, show_due = 0, end = opt.seconds_ms / 1e3;
	FILE *f = create("samples"), *pages = create("pages");
	unsigned long part = 0;
	bool last;

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &prio))
		errx(1, "no real-time priority: run this as root");
	fprintf(f, "# seconds tsc lines phase\n");
	look(pages, 0);
	start = now();
	switch_on();
	__atomic_store_n(&go, true, __ATOMIC_RELEASE);
	do {
		t = now() - start;
		if (t < due)
			usleep((due - t) * 1e6);
		t = now() - start;
		last = t >= end;
		write_sample(f, t);
		if (opt.mode == LLM)
			part = t * 1e3 >= opt.prefill_ms;
		else
			part = (unsigned long)(t * 1e3 / opt.set_ms) % opt.sets;
		if (part != (opt.mode == LLM ? phase : current_set)) {
			__atomic_store_n(opt.mode == LLM ? &phase : &current_set, part,
					 __ATOMIC_RELAXED);
			write_sample(f, t);
		}
		due += opt.sample_ms / 1e3;
		if (due < t)
			due = t;
		if (last || t >= look_due) {
			look(pages, t);
			look_due += opt.look_ms / 1e3;
			check_switched_on();
		}
		if (last || t >= show_due) {
			printf("at %.1f of %.1f s\n", t, end);
			fflush(stdout);
			show_due += 1;
		}
	} while (!last);
	finish(f, "samples");
	finish(pages, "pages");
	return arg;
}

static void save_sets(void)
{
	FILE *f = create("sets");

	fwrite(set_of, 1, nr_pages, f);
	finish(f, "sets");
	f = create("ranges");
	for (int i = 0; i < nr_ranges; i++)
		fprintf(f, "%d %lu %lu\n", ranges[i].nid, ranges[i].start, ranges[i].end);
	finish(f, "ranges");
}

static double seconds(const struct timeval *tv)
{
	return tv->tv_sec + tv->tv_usec / 1e6;
}

static void run(void)
{
	double system = 0, user = 0;
	pthread_t watcher;
	unsigned long i;
	FILE *f;

	frames = alloc(nr_pages, sizeof(*frames));
	set_of = alloc(nr_pages, 1);
	rnd_state = opt.seed;
	stay_away();
	copy_vmstat("vmstat-start");
	fill_node();
	map_buffer();
	choose_hot();
	place_buffer();
	if (opt.mode == CHASE)
		for (i = 0; i < opt.sets; i++)
			make_chain(i);
	else if (opt.mode == ZIPF)
		make_quantiles();
	/* Pages that are dirty are not migrated. */
	if (opt.file && msync(buf, opt.buffer_mb << 20, MS_SYNC))
		err(1, "msync");
	save_sets();
	start_workers();
	copy_vmstat("vmstat-before");
	copy_cpu("cpu-before");
	if (pthread_create(&watcher, NULL, watch, NULL) || pthread_join(watcher, NULL))
		errx(1, "cannot start a thread");
	copy_vmstat("vmstat-after");
	copy_cpu("cpu-after");
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < opt.threads; i++) {
		pthread_join(workers[i].thread, NULL);
		system += seconds(&workers[i].usage.ru_stime);
		user += seconds(&workers[i].usage.ru_utime);
	}
	if (on_pid)
		errx(1, "the promoter was not yet switched on when the time was over");

	f = create("result");
	fprintf(f, "mode %s\n", mode_names[opt.mode]);
	fprintf(f, "pages %lu\n", nr_pages);
	fprintf(f, "hot_pages %lu\n", hot_pages);
	fprintf(f, "sets %lu\n", opt.sets);
	fprintf(f, "threads %lu\n", opt.threads);
	fprintf(f, "slow_node %d\n", opt.slow);
	fprintf(f, "system_s %.3f\n", system);
	fprintf(f, "user_s %.3f\n", user);
	if (opt.mode == LLM) {
		/* A token asks two experts of each layer; a batch reads all of them. */
		fprintf(f, "lines_per_decode_token %lu\n", nr_pages * LINES * 2 / EXPERTS);
		fprintf(f, "lines_per_prefill_batch %lu\n", nr_pages * LINES);
		fprintf(f, "tokens_per_prefill_batch %lu\n", opt.batch);
	}
	finish(f, "result");
}

enum { O_MODE = 1, O_NUMBER, O_INT, O_TEXT, O_FLAG };

static const struct {
	const char *name;
	int kind;
	void *where;
	const char *help;
} options[] = {
	{ "mode", O_MODE, NULL, "chase, zipf, chunks or llm" },
	{ "threads", O_NUMBER, &opt.threads, "how many read" },
	{ "first-cpu", O_NUMBER, &opt.first_cpu, "the CPU of the first of them" },
	{ "buffer-mb", O_NUMBER, &opt.buffer_mb, "size of the buffer" },
	{ "hot-mb", O_NUMBER, &opt.hot_mb, "size of the hot set" },
	{ "run-pages", O_NUMBER, &opt.run_pages, "hot pages come in runs of so many" },
	{ "sets", O_NUMBER, &opt.sets, "hot sets that take turns" },
	{ "set-ms", O_NUMBER, &opt.set_ms, "how long each is hot" },
	{ "chunk-mb", O_NUMBER, &opt.chunk_mb, "size of a chunk" },
	{ "visit", O_NUMBER, &opt.visit, "lines read in a chunk before the next one" },
	{ "layers", O_NUMBER, &opt.layers, "of the model, at most 256" },
	{ "compute", O_NUMBER, &opt.compute, "instructions for a line while the prompt is read" },
	{ "batch", O_NUMBER, &opt.batch, "tokens of the prompt for which the model is read once" },
	{ "prefill-ms", O_NUMBER, &opt.prefill_ms, "how long the prompt is read" },
	{ "hog-mb", O_NUMBER, &opt.hog_mb, "locked memory of others" },
	{ "hog-node", O_INT, &opt.hog_node, "its node" },
	{ "duration-ms", O_NUMBER, &opt.seconds_ms, "of the measurement" },
	{ "look-ms", O_NUMBER, &opt.look_ms, "time between looks at the placement" },
	{ "sample-ms", O_NUMBER, &opt.sample_ms, "time between samples of the speed" },
	{ "seed", O_NUMBER, &opt.seed, "of all that is random" },
	{ "slow", O_INT, &opt.slow, "the slow node" },
	{ "dram", O_INT, &opt.dram, "the node for --ideal" },
	{ "ideal", O_FLAG, &opt.ideal, "the hot set starts in DRAM" },
	{ "huge", O_FLAG, &opt.huge, "huge pages" },
	{ "anywhere", O_FLAG, &opt.anywhere, "the buffer starts where memory is found" },
	{ "file", O_TEXT, &opt.file, "map this file" },
	{ "on", O_TEXT, &opt.on, "a shell script that is started with the measurement" },
	{ "out", O_TEXT, &opt.out, "prefix of the files that are written" },
};
#define NR_OPTIONS (sizeof(options) / sizeof(options[0]))

static void __attribute__((noreturn)) usage(void)
{
	size_t i;

	fprintf(stderr, "usage: work [options]\n");
	for (i = 0; i < NR_OPTIONS; i++)
		fprintf(stderr, "  --%-12s %s\n", options[i].name, options[i].help);
	exit(2);
}

static unsigned long number(const char *s)
{
	char *end;
	unsigned long val = strtoul(s, &end, 10);

	if (end == s || *end)
		errx(2, "'%s' is not a number", s);
	return val;
}

static void set_option(size_t i, const char *arg)
{
	size_t m;

	switch (options[i].kind) {
	case O_MODE:
		for (m = 0; m < 4; m++)
			if (!strcmp(arg, mode_names[m])) {
				opt.mode = m;
				return;
			}
		errx(2, "there is no mode '%s'", arg);
	case O_NUMBER:
		*(unsigned long *)options[i].where = number(arg);
		return;
	case O_INT:
		*(int *)options[i].where = number(arg);
		return;
	case O_TEXT:
		*(const char **)options[i].where = arg;
		return;
	case O_FLAG:
		*(bool *)options[i].where = true;
		return;
	}
}

static void check_options(void)
{
	const char *bad = NULL;

	nr_pages = (opt.buffer_mb << 20) / PAGE;
	hot_pages = (opt.hot_mb << 20) / PAGE;
	if (!opt.threads || opt.threads > MAX_THREADS)
		bad = "threads";
	else if (!opt.buffer_mb || (opt.mode == ZIPF && (nr_pages & (nr_pages - 1))))
		bad = "buffer-mb";
	else if (!opt.sets || opt.sets > MAX_SETS || !opt.set_ms)
		bad = "sets";
	else if (!hot_pages || hot_pages * opt.sets > nr_pages)
		bad = "hot-mb";
	else if (!opt.run_pages || hot_pages % opt.run_pages)
		bad = "run-pages";
	else if (!opt.chunk_mb || opt.buffer_mb % opt.chunk_mb)
		bad = "chunk-mb";
	else if (!opt.layers || opt.layers > 256)
		bad = "layers";
	else if (!opt.look_ms || !opt.sample_ms || !opt.visit)
		bad = "look-ms, sample-ms or visit";
	else if (opt.slow < 0 || opt.slow >= MAX_NODES || opt.dram >= MAX_NODES ||
		 opt.hog_node >= MAX_NODES)
		bad = "slow, dram or hog-node";
	if (bad)
		errx(2, "the value of --%s does not fit", bad);
}

int main(int argc, char **argv)
{
	struct option longs[NR_OPTIONS + 1] = {};
	size_t i;
	int c;

	for (i = 0; i < NR_OPTIONS; i++)
		longs[i] = (struct option) { options[i].name,
			options[i].kind == O_FLAG ? no_argument : required_argument, NULL, i + 256 };
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c < 256)
			usage();
		set_option(c - 256, optarg);
	}
	if (optind != argc)
		usage();
	check_options();

	read_ranges();
	pagemap_fd = open("/proc/self/pagemap", O_RDONLY);
	if (pagemap_fd < 0)
		err(1, "/proc/self/pagemap");
	run();
	return 0;
}
