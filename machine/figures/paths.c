// SPDX-License-Identifier: GPL-2.0
/*
 * paths: the kernel paths that a promoter which is switched off must not slow
 * down. Runs each of them many times and prints "name instructions".
 *
 * Only for QEMU with -icount shift=0: there the time stamp counter counts
 * instructions, 1000 million "cycles" a second, one each.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#define PAGE		4096UL
#define PAGES		1024UL
#define FILE_PAGES	256UL

static char *self;
static int file;

static void reap(pid_t pid)
{
	int status;

	if (pid < 0)
		err(1, "fork");
	if (waitpid(pid, &status, 0) != pid || status)
		errx(1, "a child failed");
}

static void touch(volatile char *p, unsigned long pages)
{
	unsigned long i;

	for (i = 0; i < pages; i++)
		p[i * PAGE] = 1;
}

static char *map(unsigned long pages, int prot, int flags, int fd)
{
	char *p = mmap(NULL, pages * PAGE, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	return p;
}

static void do_fork(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	reap(pid);
}

static void do_exec(void)
{
	pid_t pid = vfork();

	if (!pid) {
		execl(self, self, "child", NULL);
		_exit(1);
	}
	reap(pid);
}

/* A page fault with a new page, and what freeing it takes. */
static void do_anon(void)
{
	char *p = map(PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (madvise(p, PAGES * PAGE, MADV_NOHUGEPAGE))
		err(1, "madvise");
	touch(p, PAGES);
	munmap(p, PAGES * PAGE);
}

/* Faults that copy: a child writes to what it shares with its parent. */
static void do_cow(void)
{
	char *p = map(FILE_PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	pid_t pid;

	touch(p, FILE_PAGES);
	pid = fork();
	if (!pid) {
		touch(p, FILE_PAGES);
		_exit(0);
	}
	reap(pid);
	munmap(p, FILE_PAGES * PAGE);
}

static void do_file(void)
{
	char *p = map(FILE_PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, file);

	touch(p, FILE_PAGES);
	munmap(p, FILE_PAGES * PAGE);
}

/* The calls alone: splitting and merging of areas. */
static void do_mmap(void)
{
	char *p = map(64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int i;

	for (i = 1; i < 64; i += 2)
		if (mprotect(p + i * PAGE, PAGE, PROT_READ))
			err(1, "mprotect");
	for (i = 1; i < 64; i += 2)
		if (mprotect(p + i * PAGE, PAGE, PROT_READ | PROT_WRITE))
			err(1, "mprotect");
	munmap(p, 64 * PAGE);
}

static const struct {
	const char *name;
	void (*run)(void);
	unsigned int times;
} paths[] = {
	{ "fork",	do_fork,	200 },
	{ "exec",	do_exec,	200 },
	{ "anon_fault",	do_anon,	20 },
	{ "cow_fault",	do_cow,		40 },
	{ "file_fault",	do_file,	100 },
	{ "mmap",	do_mmap,	200 },
};

#define NR_PATHS	(sizeof(paths) / sizeof(paths[0]))

static uint64_t measure(unsigned int i, unsigned int times)
{
	uint64_t start = __rdtsc();

	while (times--)
		paths[i].run();
	return __rdtsc() - start;
}

int main(int argc, char **argv)
{
	uint64_t n[NR_PATHS];
	unsigned int i;

	if (argc > 1 && !strcmp(argv[1], "child"))
		return 0;
	self = argv[0];
	file = memfd_create("paths", 0);
	if (file < 0 || ftruncate(file, FILE_PAGES * PAGE))
		err(1, "memfd_create");

	/* Once over, so that caches of the kernel are filled. */
	for (i = 0; i < NR_PATHS; i++)
		measure(i, paths[i].times / 5);
	for (i = 0; i < NR_PATHS; i++)
		n[i] = measure(i, paths[i].times);
	for (i = 0; i < NR_PATHS; i++)
		printf("%s %llu\n", paths[i].name, (unsigned long long)n[i]);
	return 0;
}
