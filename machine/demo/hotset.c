// SPDX-License-Identifier: GPL-2.0
/*
 * hotset: a working set for a promoter, and an eye on where it lives.
 *
 * A buffer is placed on the slow node and left there without a policy. Some of
 * its pages, chosen at random, are hot: a chain of pointers leads through them in
 * random order, in each page through all its cache lines, and two threads follow
 * it. The other pages are never touched again. Meanwhile a third thread looks up
 * where the pages are: it reads /proc/self/pagemap, which does not touch them.
 *
 * A promoter that is on from the beginning would be at work while the buffer is
 * still being filled, for longer on a slow machine than on a fast one. --on names
 * a knob that is written when all is in place, just before the chase and the
 * clock start. The chase and the looks are in threads that start then, so that
 * the CPU time of the preparations does not bring forward the first scan of NUMA
 * balancing, which waits for a second's worth of it.
 *
 * Files written, all named after --out:
 *
 *	PREFIX.samples	one line per look, see write_sample()
 *	PREFIX.result	"name value" lines: what it came to
 *	PREFIX.before	a character per page: its node, before the chase
 *	PREFIX.after	the same at the end
 *	PREFIX.hot	a character per page: 1 for hot ones
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "workload/pages.h"

#define LINE		64UL
#define LINES		(PAGE / LINE)
#define NR_THREADS	2

static struct {
	unsigned long mb;
	unsigned long hot_pages;
	unsigned long seed;
	unsigned long seconds;
	unsigned long period_ms;
	unsigned long look_ms;
	int slow;
	unsigned long until;
	const char *out;
	const char *label;
	char *on_file;
	const char *on_value;
} opt = {
	.mb = 128,
	.hot_pages = 8192,
	.seed = 1,
	.seconds = 20,
	.period_ms = 50,
	.look_ms = 500,
	.slow = 2,
	.out = "hotset",
};

static unsigned long nr_pages;
static char *buf;
static bool *is_hot;

/* ===== Where pages are ===== */

struct placement {
	unsigned long hot_dram;
	unsigned long cold_dram;
	unsigned long moving;		/* under migration just now */
	unsigned long on_node[MAX_NODES];
};

static int pagemap_fd;
static uint64_t *pagemap;

/* Look where the pages are; @map gets a character per page, unless NULL. */
static void look(struct placement *p, char *map)
{
	size_t len = nr_pages * sizeof(*pagemap);
	unsigned long i;
	int nid;

	memset(p, 0, sizeof(*p));
	if (pread(pagemap_fd, pagemap, len,
		  (uintptr_t)buf / PAGE * sizeof(*pagemap)) != (ssize_t)len)
		err(1, "/proc/self/pagemap");
	for (i = 0; i < nr_pages; i++) {
		nid = -1;
		if (pagemap[i] & PM_PRESENT) {
			if (!(pagemap[i] & PM_PFN))
				errx(1, "pagemap shows no page frames: run this as root");
			nid = pfn_to_node(pagemap[i] & PM_PFN);
		}
		if (map)
			map[i] = nid < 0 ? '?' : '0' + nid;
		if (nid < 0) {
			p->moving++;
			continue;
		}
		p->on_node[nid]++;
		if (nid == opt.slow)
			continue;
		if (is_hot[i])
			p->hot_dram++;
		else
			p->cold_dram++;
	}
}

/* The same asked in another way: pages that move_pages() sees off the slow node. */
static unsigned long count_moved(void)
{
	void **addr = malloc(nr_pages * sizeof(*addr));
	int *status = malloc(nr_pages * sizeof(*status));
	unsigned long i, n = 0;

	if (!addr || !status)
		err(1, "malloc");
	for (i = 0; i < nr_pages; i++)
		addr[i] = buf + i * PAGE;
	if (syscall(__NR_move_pages, 0, nr_pages, addr, NULL, status, 0))
		err(1, "move_pages");
	for (i = 0; i < nr_pages; i++) {
		if (status[i] < 0)
			errx(1, "move_pages: page %lu: %s", i, strerror(-status[i]));
		n += status[i] != opt.slow;
	}
	free(addr);
	free(status);
	return n;
}

/* ===== Counters ===== */

struct counters {
	unsigned long success;		/* pgpromote_success */
	unsigned long candidate;	/* pgpromote_candidate */
	unsigned long migrated;		/* numa_pages_migrated */
	unsigned long faults;		/* numa_hint_faults */
};

static void read_counters(struct counters *c)
{
	FILE *f = fopen("/proc/vmstat", "r");
	unsigned long val;
	char name[64];

	if (!f)
		err(1, "/proc/vmstat");
	memset(c, 0, sizeof(*c));
	while (fscanf(f, "%63s %lu", name, &val) == 2) {
		if (!strcmp(name, "pgpromote_success"))
			c->success = val;
		else if (!strcmp(name, "pgpromote_candidate"))
			c->candidate = val;
		else if (!strcmp(name, "numa_pages_migrated"))
			c->migrated = val;
		else if (!strcmp(name, "numa_hint_faults"))
			c->faults = val;
	}
	fclose(f);
}

/* CPUs add up by themselves and tell later: have them tell now. */
static void read_exact_counters(struct counters *c)
{
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY);

	if (fd < 0 || write(fd, "1", 1) != 1)
		err(1, "/proc/sys/vm/stat_refresh");
	close(fd);
	read_counters(c);
}

/* ===== The chase ===== */

static struct chaser {
	pthread_t thread;
	int cpu;
	void **start;
	unsigned long steps;
} __attribute__((aligned(128))) chasers[NR_THREADS];

static bool go, stop;
static void *volatile sink;	/* so that the chase has a result */

static void *chase(void *arg)
{
	struct chaser *c = arg;
	void **p = c->start;
	unsigned long steps = 0;
	int i;

	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		usleep(1000);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < 1024; i++)
			p = *p;
		steps += 1024;
		__atomic_store_n(&c->steps, steps, __ATOMIC_RELAXED);
	}
	sink = p;
	return NULL;
}

static unsigned long all_steps(void)
{
	unsigned long sum = 0;
	int i;

	for (i = 0; i < NR_THREADS; i++)
		sum += __atomic_load_n(&chasers[i].steps, __ATOMIC_RELAXED);
	return sum;
}

/* The CPUs of this machine in an order that spreads threads over them. */
static int spread_cpu(int i)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < NR_THREADS ? i % n : i * n / NR_THREADS;
}

/*
 * The chain: from page to page in the order of @hot, which is random, and in each
 * page from line to line, in a random order too.
 */
static void make_chain(const uint32_t *hot)
{
	uint32_t *line = numbers(LINES);
	unsigned long i;
	void **p, **prev;

#define LINE_OF(i, j) ((void **)(buf + hot[i] * PAGE + line[j] * LINE))
	shuffle(line, LINES);
	prev = LINE_OF(opt.hot_pages - 1, LINES - 1);
	for (i = 0; i < opt.hot_pages * LINES; i++) {
		p = LINE_OF(i / LINES, i % LINES);
		*prev = p;
		prev = p;
	}
	for (i = 0; i < NR_THREADS; i++)
		chasers[i].start = LINE_OF(i * opt.hot_pages / NR_THREADS, 0);
#undef LINE_OF
	free(line);
}

static void start_chasers(void)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int i;

	for (i = 0; i < NR_THREADS; i++) {
		chasers[i].cpu = spread_cpu(i);
		CPU_ZERO(&cpus);
		CPU_SET(chasers[i].cpu, &cpus);
		if (pthread_attr_init(&attr) ||
		    pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus) ||
		    pthread_create(&chasers[i].thread, &attr, chase, &chasers[i]))
			errx(1, "cannot start a thread on CPU %d", chasers[i].cpu);
	}
}

/* ===== The run ===== */

/*
 * The policy holds while the pages are touched, and nothing else is allocated
 * meanwhile: so nothing of this process but the buffer is on the slow node, and
 * no policy keeps it there.
 */
static void place_buffer(void)
{
	unsigned long mask = 1UL << opt.slow, i;

	buf = mmap(NULL, opt.mb << 20, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED)
		err(1, "mmap");
	if (madvise(buf, opt.mb << 20, MADV_NOHUGEPAGE) && errno != EINVAL)
		err(1, "madvise");
	if (syscall(__NR_set_mempolicy, MPOL_BIND, &mask, sizeof(mask) * 8))
		err(1, "set_mempolicy: node %d", opt.slow);
	for (i = 0; i < nr_pages; i++)
		*(volatile char *)(buf + i * PAGE) = 1;
	if (syscall(__NR_set_mempolicy, MPOL_DEFAULT, NULL, 0))
		err(1, "set_mempolicy");
}

static uint32_t *choose_hot(void)
{
	uint32_t *pages = numbers(nr_pages);
	unsigned long i;

	shuffle(pages, nr_pages);
	for (i = 0; i < opt.hot_pages; i++)
		is_hot[pages[i]] = true;
	return pages;
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

static void save(const char *what, const char *map)
{
	FILE *f = create(what);

	if (fwrite(map, 1, nr_pages, f) != nr_pages || fputc('\n', f) == EOF || fclose(f))
		err(1, "%s.%s", opt.out, what);
}

static struct counters base;	/* at the start */
static double speed;		/* of both threads */

static void write_sample(FILE *f, double t, const struct placement *p,
			 const struct counters *c)
{
	fprintf(f, "%.3f %lu %lu %lu", t, all_steps(), c->success - base.success,
		c->faults - base.faults);
	if (p)
		fprintf(f, " %lu %lu %lu", p->hot_dram, p->cold_dram, p->moving);
	fputc('\n', f);
}

static void switch_on(void)
{
	int fd = open(opt.on_file, O_WRONLY);
	ssize_t len = strlen(opt.on_value);

	if (fd < 0 || write(fd, opt.on_value, len) != len)
		err(1, "%s", opt.on_file);
	close(fd);
}

/*
 * Start the chase, and sample until the time is over: counters often, placement
 * less often, as it takes 6 million instructions. Real-time priority lets samples
 * come when they are due.
 */
static void *watch(void *arg)
{
	const struct sched_param prio = { .sched_priority = 1 };
	double start, t, due = 0, look_due = 0, show_due = 0, end = opt.seconds;
	FILE *f = create("samples");
	struct placement p;
	struct counters c;
	bool looks, last;

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &prio))
		errx(1, "no real-time priority: run this as root");
	fprintf(f, "# seconds steps pgpromote_success numa_hint_faults "
		"hot_on_dram cold_on_dram moving\n");
	start = now();
	if (opt.on_file)
		switch_on();
	__atomic_store_n(&go, true, __ATOMIC_RELEASE);
	do {
		t = now() - start;
		if (t < due)
			usleep((due - t) * 1e6);
		t = now() - start;
		last = t >= end;
		looks = last || t >= look_due;
		read_counters(&c);
		if (looks)
			look(&p, NULL);
		write_sample(f, t, looks ? &p : NULL, &c);
		/* What was missed is missed: on a busy machine there are fewer. */
		due = due + opt.period_ms / 1e3 < t ? t : due + opt.period_ms / 1e3;
		if (!looks)
			continue;
		look_due += opt.look_ms / 1e3;
		if (opt.until && p.hot_dram * 100 >= opt.hot_pages * opt.until)
			last = true;
		if (opt.label && (last || t >= show_due)) {
			printf("%s %5.1f s: %6lu of %lu hot pages on DRAM, %lu cold ones\n",
			       opt.label, t, p.hot_dram, opt.hot_pages, p.cold_dram);
			fflush(stdout);
			show_due = t < 3 ? 0 : t + 4;
		}
	} while (!last);
	speed = all_steps() / t;
	if (fclose(f))
		err(1, "%s.samples", opt.out);
	return arg;
}

/* Pages may still be on their way: wait until nothing changes any more. */
static void settle(struct placement *p, char *map)
{
	struct placement last;
	int same = 0, tries;

	look(p, map);
	for (tries = 0; tries < 100 && same < 3; tries++) {
		last = *p;
		usleep(100000);
		look(p, map);
		same = !p->moving && !memcmp(&last, p, sizeof(last)) ? same + 1 : 0;
	}
	if (same < 3)
		errx(1, "pages still move 10 s after the last access");
}

static void run(void)
{
	unsigned long i, moved;
	struct placement p;
	struct counters c;
	pthread_t watcher;
	uint32_t *hot;
	char *map;
	FILE *f;

	rnd_state = opt.seed;
	is_hot = calloc(nr_pages, sizeof(*is_hot));
	map = malloc(nr_pages);
	pagemap = malloc(nr_pages * sizeof(*pagemap));
	if (!is_hot || !map || !pagemap)
		err(1, "malloc");
	hot = choose_hot();
	for (i = 0; i < nr_pages; i++)
		map[i] = '0' + is_hot[i];
	save("hot", map);

	read_exact_counters(&base);
	place_buffer();
	make_chain(hot);
	start_chasers();
	look(&p, map);
	save("before", map);
	if (p.on_node[opt.slow] != nr_pages)
		errx(1, "only %lu of %lu pages are on node %d at the start: is it large enough?",
		     p.on_node[opt.slow], nr_pages, opt.slow);

	if (pthread_create(&watcher, NULL, watch, NULL) || pthread_join(watcher, NULL))
		errx(1, "cannot start a thread");
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(chasers[i].thread, NULL);

	settle(&p, map);
	save("after", map);
	moved = count_moved();
	if (moved != p.hot_dram + p.cold_dram)
		errx(1, "pagemap says that %lu pages moved, move_pages() says %lu",
		     p.hot_dram + p.cold_dram, moved);
	read_exact_counters(&c);

	f = create("result");
	fprintf(f, "pages %lu\n", nr_pages);
	fprintf(f, "hot_pages %lu\n", opt.hot_pages);
	fprintf(f, "hot_on_dram %lu\n", p.hot_dram);
	fprintf(f, "cold_pages %lu\n", nr_pages - opt.hot_pages);
	fprintf(f, "cold_on_dram %lu\n", p.cold_dram);
	for (i = 0; i < MAX_NODES; i++)
		if (p.on_node[i])
			fprintf(f, "pages_on_node%lu %lu\n", i, p.on_node[i]);
	fprintf(f, "pages_moved %lu\n", moved);
	fprintf(f, "chase_steps_per_second %.0f\n", speed);
	fprintf(f, "pgpromote_success %lu\n", c.success - base.success);
	fprintf(f, "pgpromote_candidate %lu\n", c.candidate - base.candidate);
	fprintf(f, "numa_pages_migrated %lu\n", c.migrated - base.migrated);
	fprintf(f, "numa_hint_faults %lu\n", c.faults - base.faults);
	if (fclose(f))
		err(1, "%s.result", opt.out);
	free(hot);
	free(map);
}

static void __attribute__((noreturn)) usage(void)
{
	fprintf(stderr,
		"usage: hotset [options]\n"
		"  -m, --mb N          size of the buffer (%lu)\n"
		"  -p, --hot-pages N   how many of its pages are hot (%lu)\n"
		"  -s, --seed N        which ones (%lu)\n"
		"  -t, --seconds N     how long to chase (%lu)\n"
		"  -u, --until N       stop when N %% of them are seen on DRAM\n"
		"  -i, --period-ms N   time between two samples of the counters (%lu)\n"
		"  -k, --look-ms N     time between two looks at the placement (%lu)\n"
		"  -n, --node N        the slow node (%d)\n"
		"  -w, --on FILE=TEXT  write TEXT to FILE when the chase starts\n"
		"  -o, --out PREFIX    names of the files (%s)\n"
		"  -l, --label TEXT    show progress, with this in front\n",
		opt.mb, opt.hot_pages, opt.seed, opt.seconds, opt.period_ms, opt.look_ms,
		opt.slow, opt.out);
	exit(2);
}

static unsigned long number(const char *s)
{
	char *end;
	unsigned long val = strtoul(s, &end, 10);

	if (end == s || *end)
		usage();
	return val;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "mb", required_argument, NULL, 'm' },
		{ "hot-pages", required_argument, NULL, 'p' },
		{ "seed", required_argument, NULL, 's' },
		{ "seconds", required_argument, NULL, 't' },
		{ "until", required_argument, NULL, 'u' },
		{ "period-ms", required_argument, NULL, 'i' },
		{ "look-ms", required_argument, NULL, 'k' },
		{ "node", required_argument, NULL, 'n' },
		{ "on", required_argument, NULL, 'w' },
		{ "out", required_argument, NULL, 'o' },
		{ "label", required_argument, NULL, 'l' },
		{ }
	};
	int c;

	while ((c = getopt_long(argc, argv, "m:p:s:t:u:i:k:n:w:o:l:", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			opt.mb = number(optarg);
			break;
		case 'p':
			opt.hot_pages = number(optarg);
			break;
		case 's':
			opt.seed = number(optarg);
			break;
		case 't':
			opt.seconds = number(optarg);
			break;
		case 'u':
			opt.until = number(optarg);
			break;
		case 'i':
			opt.period_ms = number(optarg);
			break;
		case 'k':
			opt.look_ms = number(optarg);
			break;
		case 'n':
			opt.slow = number(optarg);
			break;
		case 'w':
			opt.on_file = optarg;
			opt.on_value = strchr(optarg, '=');
			if (!opt.on_value)
				usage();
			opt.on_file[opt.on_value++ - optarg] = 0;
			break;
		case 'o':
			opt.out = optarg;
			break;
		case 'l':
			opt.label = optarg;
			break;
		default:
			usage();
		}
	}
	nr_pages = (opt.mb << 20) / PAGE;
	if (optind != argc || !opt.hot_pages || opt.hot_pages > nr_pages ||
	    !opt.period_ms || !opt.look_ms || opt.slow < 0 || opt.slow >= MAX_NODES)
		usage();

	read_ranges();
	pagemap_fd = open("/proc/self/pagemap", O_RDONLY);
	if (pagemap_fd < 0)
		err(1, "/proc/self/pagemap");
	run();
	return 0;
}
