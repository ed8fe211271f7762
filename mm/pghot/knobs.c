// SPDX-License-Identifier: GPL-2.0
/*
 * Knobs: their ranges and defaults, and how they are read from text. sysfs and
 * sysctl show the same ones.
 */
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/nodemask.h>
#include <linux/string.h>

#include "internal.h"

struct pghot_knobs pghot_knobs __read_mostly = {
	/* Sources report only what has passed their own filters. */
	.freq_threshold			= 1,
	/* Must span some samples of a page, and forget within seconds. */
	.promote_window_ms		= 3000,
	/* The node that accesses the page is the best one. */
	.target_nid			= NUMA_NO_NODE,
	/* A few percent of the bandwidth of DRAM and of a CXL link. */
	.promote_rate_limit_mbps	= 1024,
	/* Batches form, and a page waits no longer than a person notices. */
	.kmigrated_sleep_ms		= 100,
	/* What migrate_pages() unmaps at once, with one TLB flush. */
	.kmigrated_batch_nr		= PGHOT_MAX_BATCH,
};

static const struct {
	int min, max;
} pghot_range[PGHOT_NR_KNOBS] = {
	[PGHOT_FREQ_THRESHOLD]		= { 1, PGHOT_HEAT_MAX },
	[PGHOT_PROMOTE_WINDOW_MS]	= { 100, 600000 },
	[PGHOT_TARGET_NID]		= { NUMA_NO_NODE, MAX_NUMNODES - 1 },
	[PGHOT_PROMOTE_RATE_LIMIT_MBPS]	= { 0, SZ_1M },
	[PGHOT_KMIGRATED_SLEEP_MS]	= { 10, 10000 },
	[PGHOT_KMIGRATED_BATCH_NR]	= { 1, PGHOT_MAX_BATCH },
};

int pghot_knob_get(enum pghot_knob knob)
{
	switch (knob) {
	case PGHOT_FREQ_THRESHOLD:
		return READ_ONCE(pghot_knobs.freq_threshold);
	case PGHOT_PROMOTE_WINDOW_MS:
		return READ_ONCE(pghot_knobs.promote_window_ms);
	case PGHOT_TARGET_NID:
		return READ_ONCE(pghot_knobs.target_nid);
	case PGHOT_PROMOTE_RATE_LIMIT_MBPS:
		return READ_ONCE(pghot_knobs.promote_rate_limit_mbps);
	case PGHOT_KMIGRATED_SLEEP_MS:
		return READ_ONCE(pghot_knobs.kmigrated_sleep_ms);
	case PGHOT_KMIGRATED_BATCH_NR:
		return READ_ONCE(pghot_knobs.kmigrated_batch_nr);
	default:
		return 0;
	}
}

static int pghot_set_target(int nid)
{
	nodemask_t dram;

	if (nid != NUMA_NO_NODE) {
		if (!node_online(nid))
			return -ENODEV;
		/* Slow memory, or no memory at all. */
		pghot_dram_nodes(&dram);
		if (!node_isset(nid, dram))
			return -EINVAL;
	}
	WRITE_ONCE(pghot_knobs.target_nid, nid);
	return 0;
}

/*
 * Set a knob. Returns 0, -ERANGE if @val is out of its range, -ENODEV for a
 * node that is not there, -EINVAL for one that is no DRAM node, or -ENOMEM; then
 * nothing has changed.
 */
int pghot_knob_set(enum pghot_knob knob, long long val)
{
	int err = 0;

	if (val < pghot_range[knob].min || val > pghot_range[knob].max)
		return -ERANGE;

	guard(mutex)(&pghot_lock);
	switch (knob) {
	case PGHOT_FREQ_THRESHOLD:
		WRITE_ONCE(pghot_knobs.freq_threshold, val);
		break;
	case PGHOT_PROMOTE_WINDOW_MS:
		err = pghot_set_window(val);
		if (!err)
			WRITE_ONCE(pghot_knobs.promote_window_ms, val);
		break;
	case PGHOT_TARGET_NID:
		err = pghot_set_target(val);
		break;
	case PGHOT_PROMOTE_RATE_LIMIT_MBPS:
		WRITE_ONCE(pghot_knobs.promote_rate_limit_mbps, val);
		break;
	case PGHOT_KMIGRATED_SLEEP_MS:
		WRITE_ONCE(pghot_knobs.kmigrated_sleep_ms, val);
		break;
	case PGHOT_KMIGRATED_BATCH_NR:
		WRITE_ONCE(pghot_knobs.kmigrated_batch_nr, val);
		break;
	default:
		return -EINVAL;
	}
	return err;
}

/* Returns 0, -EINVAL if @buf is no number, or -ERANGE if it is a huge one. */
int pghot_parse_number(const char *buf, long long *val)
{
	return kstrtoll(buf, 0, val);
}

/* The same with -ERANGE for what is not in @min..@max. */
int pghot_parse_range(const char *buf, long long min, long long max,
		      long long *val)
{
	int err = pghot_parse_number(buf, val);

	if (err)
		return err;
	return *val < min || *val > max ? -ERANGE : 0;
}

const char * const pghot_source_names[PGHOT_NR_SOURCES] = {
	[PGHOT_SRC_HINTFAULTS]	= "hintfaults",
	[PGHOT_SRC_HWHINTS]	= "hwhints",
	[PGHOT_SRC_PGSCAN]	= "pgscan",
};

/*
 * Sources as a list of names with commas, or as a mask, or "off".
 *
 * Returns 0 and the mask, -ERANGE for bits that mean nothing, or -EINVAL.
 */
int pghot_parse_sources(const char *buf, unsigned long *mask)
{
	unsigned long found = 0;
	long long val;
	size_t len;
	int id, err;

	err = pghot_parse_range(buf, 0, GENMASK(PGHOT_NR_SOURCES - 1, 0), &val);
	if (!err)
		*mask = val;
	if (err != -EINVAL)
		return err;

	if (sysfs_streq(buf, "off")) {
		*mask = 0;
		return 0;
	}

	do {
		len = strcspn(buf, ",\n");
		for (id = 0; id < PGHOT_NR_SOURCES; id++)
			if (strlen(pghot_source_names[id]) == len &&
			    !strncmp(buf, pghot_source_names[id], len))
				break;
		if (id == PGHOT_NR_SOURCES)
			return -EINVAL;
		found |= BIT(id);
		buf += len;
	} while (*buf++ == ',');

	/* One newline may end it, and nothing else. */
	if (buf[-1] == '\n' && *buf)
		return -EINVAL;
	*mask = found;
	return 0;
}
