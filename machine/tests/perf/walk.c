// SPDX-License-Identifier: GPL-2.0
/*
 * walk NODE MB MILLIONS [CPU]: loads from random lines of memory on a node, and
 * stores to every eighth of them, on one processor. Prints where that memory is:
 *	buffer ADDRESS BYTES
 *	page ADDRESS PHYSICAL (each)
 * before it begins.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE	4096UL
#define MPOL_BIND 2

int main(int argc, char **argv)
{
	uint64_t n, i, at, entry, x = 88172645463325252ull, sum = 0;
	unsigned long node, mask, size;
	cpu_set_t set;
	char *buf;
	int fd;

	if (argc < 4)
		errx(2, "usage: walk NODE MB MILLIONS [CPU]");
	node = strtoul(argv[1], NULL, 0);
	size = strtoul(argv[2], NULL, 0) << 20;
	n = strtoul(argv[3], NULL, 0) * 1000000;
	if (size & (size - 1))
		errx(2, "the size must be a power of two");
	CPU_ZERO(&set);
	CPU_SET(argc > 4 ? atoi(argv[4]) : 0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "sched_setaffinity");

	buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED)
		err(1, "mmap");
	mask = 1ul << node;
	if (syscall(SYS_mbind, buf, size, MPOL_BIND, &mask, 64ul, 0))
		err(1, "mbind to node %lu", node);
	for (at = 0; at < size; at += PAGE)
		buf[at] = 1;
	fd = open("/proc/self/pagemap", O_RDONLY);
	if (fd < 0)
		err(1, "pagemap");
	printf("buffer 0x%lx %lu\n", (unsigned long)buf, size);
	for (at = 0; at < size; at += PAGE) {
		if (pread(fd, &entry, 8, ((unsigned long)buf + at) / PAGE * 8) != 8 || !(entry >> 63))
			err(1, "pagemap of %p", buf + at);
		printf("page 0x%lx 0x%lx\n", (unsigned long)buf + at, (unsigned long)((entry & ((1ull << 55) - 1)) * PAGE));
	}
	fflush(stdout);

	for (i = 0; i < n; i++) {
		uint64_t *p;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p = (uint64_t *)(buf + (x & (size - 1) & ~63ul));
		if (i & 7)
			sum += *(volatile uint64_t *)p;
		else
			*(volatile uint64_t *)(p + 1) = i;
	}
	return sum == 42;
}
