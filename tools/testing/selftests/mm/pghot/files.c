// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of files are promoted too: shared and private mappings, clean and dirty
 * pages, program text, shared memory.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "hot_text.h"
#include "pghot_util.h"

#define NR	64

/* Where the files are. */
FIXTURE(files)
{
	char dir[64];
	bool mounted;
};

FIXTURE_VARIANT(files)
{
	const char *type;
};

FIXTURE_VARIANT_ADD(files, tmpfs) { .type = "tmpfs", };
FIXTURE_VARIANT_ADD(files, ext4) { .type = "ext4", };

static const char *mount_ext4(const char *dir)
{
	const char *dev = "/dev/ram0";
	char cmd[256];

	/*
	 * A disk in memory that nobody uses. Programs that make file systems
	 * have several names; ext4 mounts an ext2 one as well.
	 */
	if (access(dev, F_OK))
		return "no ram disk";
	snprintf(cmd, sizeof(cmd),
		 "for m in mkfs.ext4 mke2fs mkfs.ext2; do $m -q %s 4096 || $m %s 4096; done >/dev/null 2>&1; true",
		 dev, dev);
	if (system(cmd))
		return "no shell";
	if (mount(dev, dir, "ext4", 0, NULL))
		return "no ext4, or no program that makes one";
	return NULL;
}

FIXTURE_SETUP(files)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);

	if (missing)
		SKIP(return, "%s", missing);
	snprintf(self->dir, sizeof(self->dir), "/tmp/pghot-test-XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->dir));
	if (!strcmp(variant->type, "ext4"))
		missing = mount_ext4(self->dir);
	else if (mount("pghot-test", self->dir, "tmpfs", 0, NULL))
		missing = "no tmpfs";
	if (missing) {
		rmdir(self->dir);
		SKIP(return, "%s", missing);
	}
}

/* In the parent, when whoever used the files is gone. */
FIXTURE_TEARDOWN_PARENT(files)
{
	pg_stop();
	umount2(self->dir, MNT_DETACH);
	rmdir(self->dir);
}

static int make_file(const char *dir, const char *name)
{
	char path[PATH_MAX], *page;
	int fd, i;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	if (fd < 0)
		return -1;
	page = malloc(pg_page);
	for (i = 0; page && i < NR; i++) {
		memset(page, i, pg_page);
		if (write(fd, page, pg_page) != pg_page)
			break;
	}
	free(page);
	return i == NR ? fd : -1;
}

static bool intact(const char *p)
{
	size_t i, k;

	for (i = 0; i < NR; i++)
		for (k = 0; k < pg_page; k++)
			if (p[i * pg_page + k] != (char)i)
				return false;
	return true;
}

/* Half of a mapped file is hot. */
static void check_mapping(struct __test_metadata *_metadata, char *p)
{
	struct pg_counts c;

	pg_touch(p, NR, 1);
	ASSERT_TRUE(pg_to_slow(p, NR));

	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	EXPECT_TRUE(pg_touch_until(p, NR, 2, pg_on_dram(p, NR, 2) == NR / 2));
	ASSERT_EQ(0, pg_sources(false));
	pg_since(&c);

	/* Page cache may come in larger pieces than the half that is used. */
	EXPECT_GE(c.success, NR / 2);
	EXPECT_EQ(c.promoted, c.success);
	EXPECT_TRUE(intact(p));
}

TEST_F_TIMEOUT(files, shared, PG_TIMEOUT)
{
	int fd = make_file(self->dir, "file");
	char *p;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, fsync(fd));
	p = mmap(NULL, NR * pg_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	check_mapping(_metadata, p);
}

TEST_F_TIMEOUT(files, private_read_only, PG_TIMEOUT)
{
	int fd = make_file(self->dir, "file");
	char *p;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, fsync(fd));
	p = mmap(NULL, NR * pg_page, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	check_mapping(_metadata, p);
}

/*
 * Page cache is everybody's: one who never touched it, but says that it is to be in
 * slow memory, does not hold it there for the others.
 */
TEST_F_TIMEOUT(files, claimed_by_another, PG_TIMEOUT)
{
	int fd = make_file(self->dir, "file"), to_parent[2];
	char *p, byte;
	pid_t pid;

	if (!strcmp(variant->type, "tmpfs"))
		SKIP(return, "shared memory has a policy of its own");
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, fsync(fd));
	ASSERT_EQ(0, pipe(to_parent));
	pid = pg_fork();
	if (!pid) {
		p = mmap(NULL, NR * pg_page, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED || pg_mbind(p, NR, MPOL_BIND, &pg_m.slow, 1) ||
		    write(to_parent[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ASSERT_GT(pid, 0);
	ASSERT_EQ(1, read(to_parent[0], &byte, 1));

	p = mmap(NULL, NR * pg_page, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	check_mapping(_metadata, p);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Pages that were written to and not written back. */
TEST_F_TIMEOUT(files, dirty, PG_TIMEOUT)
{
	int fd = make_file(self->dir, "file");
	struct pg_counts c;
	char *p;
	int i;

	ASSERT_GE(fd, 0);
	p = mmap(NULL, NR * pg_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	pg_touch(p, NR, 1);
	ASSERT_TRUE(pg_to_slow(p, NR));

	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	EXPECT_TRUE(pg_wait_until(({
		for (i = 0; i < NR; i++)
			p[i * pg_page] = i;
		pg_touch_a_while(p, NR, 1);
		pg_on_dram(p, NR, 1) == NR;
	})));
	ASSERT_EQ(0, pg_sources(false));
	pg_since(&c);
	EXPECT_GE(c.success, NR);
	EXPECT_TRUE(intact(p));
	/* What is on the disk is what was written. */
	ASSERT_EQ(0, fsync(fd));
	ASSERT_EQ(0, posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	EXPECT_TRUE(intact(p));
}

/* Program text: of a program that others do not run. */
TEST_F_TIMEOUT(files, program_text, PG_TIMEOUT)
{
	char path[PATH_MAX], cmd[4 * PATH_MAX], self_path[PATH_MAX], *p;
	struct pg_counts c;
	size_t nr, on_dram, hot = HOT_TEXT_BYTES / pg_page;
	struct stat st;
	ssize_t len;
	pid_t pid;
	int fd;

	/* It stands beside this program. */
	len = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
	ASSERT_GT(len, 0);
	self_path[len] = '\0';
	*strrchr(self_path, '/') = '\0';
	snprintf(path, sizeof(path), "%s/hot_text", self->dir);
	snprintf(cmd, sizeof(cmd), "cp '%s/hot_text' '%s' && chmod 755 '%s' && sync",
		 self_path, path, path);
	ASSERT_EQ(0, system(cmd));

	/* All of it, text included, is in the page cache, on the slow node. */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, fstat(fd, &st));
	nr = (st.st_size + pg_page - 1) / pg_page;
	p = mmap(NULL, nr * pg_page, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	pg_touch(p, nr, 1);
	ASSERT_TRUE(pg_to_slow(p, nr));

	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	pid = pg_fork();
	if (!pid) {
		execl(path, path, NULL);
		_exit(127);
	}
	ASSERT_GT(pid, 0);
	/* This process does not touch the pages, it only looks where they are. */
	EXPECT_TRUE(pg_wait_until((on_dram = pg_on_dram(p, nr, 1)) >= hot))
		TH_LOG("%zu of %zu pages of the program are on DRAM", on_dram, nr);
	EXPECT_EQ(0, waitpid(pid, NULL, WNOHANG));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ASSERT_EQ(0, pg_sources(false));
	pg_since(&c);
	EXPECT_GE(c.success, hot);
	EXPECT_EQ(c.promoted, c.success);
}

/* ===== Memory that is shared without a file ===== */

FIXTURE(shmem)
{
};

FIXTURE_SETUP(shmem)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);

	if (missing)
		SKIP(return, "%s", missing);
}

FIXTURE_TEARDOWN(shmem)
{
	pg_stop();
}

static void check_shmem(struct __test_metadata *_metadata, char *p)
{
	struct pg_counts c;

	pg_fill(p, NR, 1);
	ASSERT_TRUE(pg_to_slow(p, NR));
	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	EXPECT_TRUE(pg_touch_until(p, NR, 2, pg_on_dram(p, NR, 2) == NR / 2));
	ASSERT_EQ(0, pg_sources(false));
	pg_since(&c);
	EXPECT_GE(c.success, NR / 2);
	EXPECT_EQ(NR / 2, pg_on(p + pg_page, NR - 1, 2, pg_m.slow));
	EXPECT_EQ(0, pg_damage(p, NR, 1));
}

TEST_F_TIMEOUT(shmem, shared_anonymous, PG_TIMEOUT)
{
	char *p = mmap(NULL, NR * pg_page, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	check_shmem(_metadata, p);
}

TEST_F_TIMEOUT(shmem, memfd, PG_TIMEOUT)
{
	int fd = memfd_create("pghot-test", MFD_CLOEXEC);
	char *p;

	if (fd < 0)
		SKIP(return, "no memfd");
	ASSERT_EQ(0, ftruncate(fd, NR * pg_page));
	p = mmap(NULL, NR * pg_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	check_shmem(_metadata, p);
}

/* One page, mapped by several: promoted once for all of them. */
TEST_F_TIMEOUT(shmem, several_processes, PG_TIMEOUT)
{
	char *p = mmap(NULL, NR * pg_page, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct pg_counts c;
	pid_t pid[3];
	int i;

	ASSERT_NE(MAP_FAILED, p);
	pg_fill(p, NR, 2);
	ASSERT_TRUE(pg_to_slow(p, NR));
	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	for (i = 0; i < 3; i++) {
		pid[i] = pg_fork();
		if (!pid[i])
			for (;;)
				pg_touch(p, NR, 1);
		ASSERT_GT(pid[i], 0);
	}
	EXPECT_TRUE(pg_wait_until(pg_on_dram(p, NR, 1) == NR));
	for (i = 0; i < 3; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	ASSERT_EQ(0, pg_sources(false));
	pg_since(&c);
	EXPECT_GE(c.success, NR);
	EXPECT_EQ(0, pg_damage(p, NR, 2));
}

int main(int argc, char **argv)
{
	return pg_main(argc, argv, test_harness_run);
}
