/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the workloads of the demo and of the bench share: random numbers that are
 * the same everywhere, and which node a page frame is on.
 */
#ifndef PGHOT_WORKLOAD_PAGES_H
#define PGHOT_WORKLOAD_PAGES_H

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAGE		4096UL
#define MAX_NODES	10	/* a node is one character in the maps */
#define MAX_RANGES	64

/* Bits of an entry of pagemap, Documentation/admin-guide/mm/pagemap.rst */
#define PM_PRESENT	(1ULL << 63)
#define PM_PFN		((1ULL << 55) - 1)

/* ===== Random numbers: the same ones for the same seed, everywhere ===== */

static uint64_t rnd_state;

static uint64_t rnd(void)
{
	uint64_t z = (rnd_state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static void shuffle(uint32_t *a, size_t n)
{
	size_t i, j;
	uint32_t t;

	for (i = n; i > 1; i--) {
		j = rnd() % i;
		t = a[i - 1];
		a[i - 1] = a[j];
		a[j] = t;
	}
}

static uint32_t *numbers(size_t n)
{
	uint32_t *a = malloc(n * sizeof(*a));
	size_t i;

	if (!a)
		err(1, "malloc");
	for (i = 0; i < n; i++)
		a[i] = i;
	return a;
}

/* ===== Where pages are ===== */

/* Page frames of a node, as far as its zones reach. */
static struct range {
	unsigned long start, end;
	int nid;
} ranges[MAX_RANGES];
static int nr_ranges;

static void read_ranges(void)
{
	unsigned long spanned = 0, start, val;
	FILE *f = fopen("/proc/zoneinfo", "r");
	char line[256];
	int nid = -1;

	if (!f)
		err(1, "/proc/zoneinfo");
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "Node %d,", &nid);
		if (sscanf(line, " spanned %lu", &val) == 1)
			spanned = val;
		if (sscanf(line, " start_pfn: %lu", &start) != 1 || !spanned)
			continue;
		if (nid < 0 || nid >= MAX_NODES || nr_ranges == MAX_RANGES)
			errx(1, "/proc/zoneinfo: more nodes or zones than this can show");
		ranges[nr_ranges++] = (struct range) { start, start + spanned, nid };
		spanned = 0;
	}
	fclose(f);
	if (!nr_ranges)
		errx(1, "/proc/zoneinfo: no zones found");
}

static inline int pfn_to_node(unsigned long pfn)
{
	int i;

	for (i = 0; i < nr_ranges; i++)
		if (pfn >= ranges[i].start && pfn < ranges[i].end)
			return ranges[i].nid;
	return -1;
}

/* ===== Time ===== */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

#endif /* PGHOT_WORKLOAD_PAGES_H */
