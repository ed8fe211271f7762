// SPDX-License-Identifier: GPL-2.0
/*
 * memory: what an access costs in the guest. Prints one line a measurement:
 *
 *	latency CPU-NODE MEMORY-NODE THREADS ns
 *	bandwidth MEMORY-NODE THREADS MB/s
 *
 * Latency is that of a pointer chase through all lines of a buffer on the node, in
 * random order, one buffer a thread, the threads on the CPUs of one node. Bandwidth
 * is what threads on all CPUs get that read buffers on the node from end to end, for
 * a time.
 *
 * usage: memory latency BUFFER-KB LOADS THREADS... | memory bandwidth BUFFER-KB MS THREADS...
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE		64
#define CHUNK		16384
#define MAX_THREADS	8
#define MAX_NODES	8
#define MPOL_BIND	2

static size_t size;
static long count;
static int nr_threads;
static pthread_barrier_t barrier;

static struct thread {
	pthread_t id;
	int cpu, node;
	uint64_t seed;
	char *buf;
	void *at;
	uint64_t sum, bytes;
	double start, end;
} threads[MAX_THREADS];

static void die(const char *what)
{
	fprintf(stderr, "memory: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static uint64_t rnd(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* A list like "0-3,5" in a file of sysfs, as a mask. */
static unsigned long mask_of(const char *file)
{
	unsigned long mask = 0;
	char text[256], *p = text;
	FILE *f = fopen(file, "r");

	if (!f || !fgets(text, sizeof(text), f))
		die(file);
	fclose(f);
	while (*p >= '0' && *p <= '9') {
		unsigned long a = strtoul(p, &p, 10), b = a;

		if (*p == '-')
			b = strtoul(p + 1, &p, 10);
		for (; a <= b; a++)
			mask |= 1UL << a;
		p += *p == ',';
	}
	return mask;
}

static unsigned long cpus_of(int node)
{
	char file[80];

	snprintf(file, sizeof(file), "/sys/devices/system/node/node%d/cpulist", node);
	return mask_of(file);
}

static void *buffer_on(int node)
{
	unsigned long mask = 1UL << node;
	char *buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buf == MAP_FAILED)
		die("mmap");
	if (syscall(SYS_mbind, buf, size, MPOL_BIND, &mask, sizeof(mask) * 8 + 1, 0))
		die("mbind");
	/* Page tables and the like are none of what is measured. */
	memset(buf, 1, size);
	return buf;
}

/* Each line points to the next one of a random order that has them all. */
static void *make_chain(struct thread *t)
{
	size_t n = size / LINE, i;
	uint32_t *order = malloc(n * sizeof(*order));

	if (!order)
		die("malloc");
	for (i = 0; i < n; i++)
		order[i] = i;
	for (i = n - 1; i; i--) {
		size_t j = rnd(&t->seed) % (i + 1);
		uint32_t x = order[i];

		order[i] = order[j];
		order[j] = x;
	}
	for (i = 0; i < n; i++)
		*(void **)(t->buf + (size_t)order[i] * LINE) = t->buf + (size_t)order[(i + 1) % n] * LINE;
	free(order);
	return t->buf;
}

static void pin(struct thread *t)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(t->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

#define X4(x) x x x x

static void *chase(void *arg)
{
	struct thread *t = arg;
	void **p;
	long i;

	pin(t);
	t->buf = buffer_on(t->node);
	p = make_chain(t);
	pthread_barrier_wait(&barrier);
	t->start = now();
	for (i = 0; i < count; i += 16) {
		X4(X4(p = *(void *volatile *)p;))
	}
	t->end = now();
	t->at = p;
	pthread_barrier_wait(&barrier);
	munmap(t->buf, size);
	return NULL;
}

static void *stream(void *arg)
{
	struct thread *t = arg;
	uint64_t sum = 0;
	size_t n, at = 0;

	pin(t);
	t->buf = buffer_on(t->node);
	pthread_barrier_wait(&barrier);
	do {
		/* What was dirty in a cache shall be gone when it starts. */
		if (t->bytes == size)
			t->start = now();
		/* A load a line: as fast as a CPU that loads whole lines. */
		for (n = 0; n < CHUNK; n += 4 * LINE) {
			volatile uint64_t *p = (void *)(t->buf + at + n);

			sum += p[0] + p[LINE / 8] + p[2 * LINE / 8] + p[3 * LINE / 8];
		}
		at = (at + CHUNK) % size;
		t->bytes += CHUNK;
		t->end = now();
	} while (t->bytes <= size || t->end - t->start < count * 1e6);
	t->bytes -= size;
	t->sum = sum;
	pthread_barrier_wait(&barrier);
	munmap(t->buf, size);
	return NULL;
}

/* Runs them on the CPUs of @mask, or says that there are too few. */
static int run(void *(*work)(void *), unsigned long mask, int node)
{
	int i, cpu = -1;

	if (__builtin_popcountl(mask) < nr_threads)
		return 0;
	pthread_barrier_init(&barrier, NULL, nr_threads);
	for (i = 0; i < nr_threads; i++) {
		do {
			cpu++;
		} while (!(mask & 1UL << cpu));
		threads[i].cpu = cpu;
		threads[i].node = node;
		threads[i].bytes = 0;
		threads[i].seed = 88172645463325252ULL + i * 2 + 1;
		if (pthread_create(&threads[i].id, NULL, work, &threads[i]))
			die("pthread_create");
	}
	for (i = 0; i < nr_threads; i++)
		pthread_join(threads[i].id, NULL);
	pthread_barrier_destroy(&barrier);
	return 1;
}

int main(int argc, char **argv)
{
	unsigned long with_memory = mask_of("/sys/devices/system/node/has_memory");
	unsigned long with_cpu = mask_of("/sys/devices/system/node/has_cpu");
	int cpu_node, node, a, i, latency;

	latency = argc > 1 && !strcmp(argv[1], "latency");
	if (argc < 5 || (!latency && strcmp(argv[1], "bandwidth"))) {
		fprintf(stderr, "usage: memory latency|bandwidth BUFFER-KB LOADS|MS THREADS...\n");
		return 2;
	}
	size = strtoul(argv[2], NULL, 0) << 10;
	count = strtol(argv[3], NULL, 0);
	for (a = 4; a < argc; a++) {
		nr_threads = atoi(argv[a]);
		if (nr_threads < 1 || nr_threads > MAX_THREADS)
			return 2;
		for (node = 0; node < MAX_NODES; node++) {
			if (!(with_memory & 1UL << node))
				continue;
			if (!latency) {
				double rate = 0;

				if (!run(stream, mask_of("/sys/devices/system/cpu/online"), node))
					continue;
				for (i = 0; i < nr_threads; i++)
					rate += threads[i].bytes / (threads[i].end - threads[i].start);
				printf("bandwidth %d %d %.1f\n", node, nr_threads, rate * 1e3);
				continue;
			}
			for (cpu_node = 0; cpu_node < MAX_NODES; cpu_node++) {
				double sum = 0;

				if (!(with_cpu & 1UL << cpu_node) || !run(chase, cpus_of(cpu_node), node))
					continue;
				for (i = 0; i < nr_threads; i++)
					sum += threads[i].end - threads[i].start;
				printf("latency %d %d %d %.2f\n", cpu_node, node, nr_threads, sum / nr_threads / count);
			}
		}
		fflush(stdout);
	}
	return 0;
}
