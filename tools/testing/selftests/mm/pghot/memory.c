// SPDX-License-Identifier: GPL-2.0
/*
 * What pghot takes for itself: two bytes and a bit a page, in DRAM, while a source
 * is enabled.
 */
#include <dirent.h>
#include <limits.h>
#include <fcntl.h>

#include "kselftest_harness.h"
#include "pghot_util.h"

FIXTURE(memory)
{
};

FIXTURE_SETUP(memory)
{
	const char *missing = pg_start(PG_NEED_PROMOTION);

	if (missing)
		SKIP(return, "%s", missing);
}

FIXTURE_TEARDOWN(memory)
{
	pg_stop();
}

/* Pages with records, on all lower-tier nodes. */
static long nr_records(void)
{
	struct dirent *e;
	long nr = 0;
	DIR *d;

	d = opendir(PG_DIR "/nodes");
	if (!d)
		return -1;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			nr += pg_read(PG_DIR "/nodes/%s/records", e->d_name);
	closedir(d);
	return nr;
}

TEST_F_TIMEOUT(memory, bytes_in_use, PG_TIMEOUT)
{
	long nr, bytes, header, failures;
	char status[64];

	EXPECT_EQ(0, pg_get("bytes_in_use"));
	EXPECT_EQ(0, nr_records());
	ASSERT_GT(pg_read_text(PG_DIR "/status", status, sizeof(status)), 0);
	EXPECT_STREQ("disabled", status);

	failures = pg_get("alloc_failures");
	ASSERT_EQ(0, pg_sources(true));
	ASSERT_GT(pg_read_text(PG_DIR "/status", status, sizeof(status)), 0);
	EXPECT_STREQ("active", status);
	nr = nr_records();
	bytes = pg_get("bytes_in_use");

	/* All pages of the slow node, and no more than whole sections of it. */
	EXPECT_EQ(failures, pg_get("alloc_failures"));
	EXPECT_GE(nr, pg_node_stat(pg_m.slow, "MemTotal") * 1024 / (long)pg_page);

	/* The rest is a header a section: less than a 256th of a byte a page. */
	header = bytes - 2 * nr - nr / 8;
	EXPECT_GT(header, 0);
	EXPECT_LT(header, nr / 128);

	ASSERT_EQ(0, pg_sources(false));
	EXPECT_EQ(0, pg_get("bytes_in_use"));
	EXPECT_EQ(0, nr_records());
}

/* The slow node has as much free memory as before. */
TEST_F_TIMEOUT(memory, records_are_in_dram, PG_TIMEOUT)
{
	long off, on, bytes = 0, delta, best = LONG_MAX;
	int i;

	/* Others may use the node too: once must do. */
	for (i = 0; i < 10 && best > bytes / 4; i++) {
		pg_vmstat("nr_free_pages");
		off = pg_node_stat(pg_m.slow, "MemFree");
		ASSERT_EQ(0, pg_sources(true));
		bytes = pg_get("bytes_in_use");
		pg_vmstat("nr_free_pages");
		on = pg_node_stat(pg_m.slow, "MemFree");
		ASSERT_EQ(0, pg_sources(false));
		delta = labs(off - on) * 1024;
		if (delta < best)
			best = delta;
	}
	ASSERT_GT(bytes, 0);
	EXPECT_LE(best, bytes / 4);
}

static long free_kb(void)
{
	long kb = 0;
	int nid;

	pg_vmstat("nr_free_pages");
	for (nid = 0; nid < PG_MAX_NODES; nid++)
		if (pg_m.is_dram[nid])
			kb += pg_node_stat(nid, "MemFree");
	return kb;
}

static long slab_kb(void)
{
	return (pg_vmstat("nr_slab_unreclaimable")) * (long)pg_page / 1024;
}

TEST_F_TIMEOUT(memory, no_leak, PG_TIMEOUT)
{
	long bytes, free_before = 0, slab_before = 0, lost, grown, limit;
	int i;

	for (i = 0; i < 60; i++) {
		/* Caches fill up in the first ones. */
		if (i == 10) {
			free_before = free_kb();
			slab_before = slab_kb();
		}
		ASSERT_EQ(0, pg_sources(true));
		bytes = pg_get("bytes_in_use");
		ASSERT_GT(bytes, 0);
		/* A new clock each time. */
		ASSERT_EQ(0, pg_set("promote_window_ms", 1000 + i));
		ASSERT_EQ(0, pg_sources(false));
		ASSERT_EQ(0, pg_get("bytes_in_use"));
	}
	/* An eighth of what would be lost if nothing were freed, and some noise. */
	limit = 50 * bytes / 8 / 1024 + 512;
	lost = free_before - free_kb();
	EXPECT_TRUE(pg_wait_until((lost = free_before - free_kb()) < limit))
		TH_LOG("%ld kB less free after 50 times", lost);
	EXPECT_TRUE(pg_wait_until((grown = slab_kb() - slab_before) < limit / 2))
		TH_LOG("%ld kB more slab after 50 times", grown);
}

/* ===== No memory ===== */

static int inject(const char *what, const char *file, const char *val)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", what, file);
	return pg_write(path, "%s", val);
}

static int inject_all(const char *what, const char *probability)
{
	return inject(what, "task-filter", "Y") ?:
	       inject(what, "ignore-gfp-wait", "N") ?:
	       inject(what, "verbose", "0") ?:
	       inject(what, "interval", "1") ?:
	       inject(what, "times", "-1") ?:
	       inject(what, "probability", probability);
}

/* Sections without records are counted, and nothing else suffers. */
TEST_F_TIMEOUT(memory, no_memory, PG_TIMEOUT)
{
	long failures, nr;
	int fd, rounds;
	char *p;

	fd = open("/proc/self/make-it-fail", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || inject_all("failslab", "20") ||
	    inject_all("fail_page_alloc", "5"))
		SKIP(return, "no fault injection");

	ASSERT_EQ(0, pg_sources(true));
	nr = nr_records();
	ASSERT_EQ(0, pg_sources(false));
	failures = pg_get("alloc_failures");

	for (rounds = 0; rounds < 1000 && pg_get("alloc_failures") < failures + 5;
	     rounds++) {
		/* The write itself may fail as well: then nothing has changed. */
		while (pwrite(fd, "1", 1, 0) != 1)
			;
		pg_sources(true);
		while (pwrite(fd, "0", 1, 0) != 1)
			;
		EXPECT_LE(nr_records(), nr);
		ASSERT_EQ(0, pg_sources(false));
		ASSERT_EQ(0, pg_get("bytes_in_use"));
	}
	EXPECT_GE(pg_get("alloc_failures"), failures + 5);
	inject("failslab", "probability", "0");
	inject("fail_page_alloc", "probability", "0");
	close(fd);

	/* With memory again, all is as ever. */
	p = pg_map_slow(64);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, pg_sources(true));
	EXPECT_EQ(nr, nr_records());
	EXPECT_TRUE(pg_touch_until(p, 64, 1, pg_on_dram(p, 64, 1) == 64));
}

int main(int argc, char **argv)
{
	return pg_main(argc, argv, test_harness_run);
}
