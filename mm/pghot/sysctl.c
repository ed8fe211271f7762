// SPDX-License-Identifier: GPL-2.0
/*
 * vm.pghot_*: those knobs that belong into sysctl.d. The same values as in
 * /sys/kernel/mm/pghot, read the same way, with the same ranges and errors.
 */
#include <linux/init.h>
#include <linux/sysctl.h>

#include "internal.h"

#ifdef CONFIG_SYSCTL

/* The table entry's extra1 is the knob; one more means the sources. */
#define PGHOT_SYSCTL_SOURCES	PGHOT_NR_KNOBS

/* Text as a whole: the buffer of a write is terminated by a NUL. */
static int pghot_sysctl_write(unsigned int knob, const char *text)
{
	unsigned long mask;
	long long val;
	int err;

	if (knob == PGHOT_SYSCTL_SOURCES) {
		err = pghot_parse_sources(text, &mask);
		return err ?: pghot_set_sources(mask);
	}
	err = pghot_parse_number(text, &val);
	return err ?: pghot_knob_set(knob, val);
}

static int pghot_sysctl(const struct ctl_table *table, int write, void *buffer,
			size_t *lenp, loff_t *ppos)
{
	unsigned int knob = (uintptr_t)table->extra1;
	struct ctl_table t = *table;
	int err, val;

	if (write) {
		err = *ppos ? -EINVAL : pghot_sysctl_write(knob, buffer);
		if (!err)
			*ppos += *lenp;
		return err;
	}

	val = knob == PGHOT_SYSCTL_SOURCES ? pghot_enabled_sources() :
					     pghot_knob_get(knob);
	t.data = &val;
	return proc_dointvec(&t, write, buffer, lenp, ppos);
}

#define PGHOT_SYSCTL(_name, _knob) {				\
	.procname	= _name,				\
	.maxlen		= sizeof(int),				\
	.mode		= 0644,					\
	.proc_handler	= pghot_sysctl,				\
	.extra1		= (void *)(uintptr_t)(_knob),		\
}

static const struct ctl_table pghot_sysctls[] = {
	PGHOT_SYSCTL("pghot_enabled_sources", PGHOT_SYSCTL_SOURCES),
	PGHOT_SYSCTL("pghot_freq_threshold", PGHOT_FREQ_THRESHOLD),
	PGHOT_SYSCTL("pghot_promote_window_ms", PGHOT_PROMOTE_WINDOW_MS),
	PGHOT_SYSCTL("pghot_target_nid", PGHOT_TARGET_NID),
	PGHOT_SYSCTL("pghot_promote_rate_limit_MBps", PGHOT_PROMOTE_RATE_LIMIT_MBPS),
};

void __init pghot_sysctl_init(void)
{
	register_sysctl_init("vm", pghot_sysctls);
}

#else /* !CONFIG_SYSCTL */

void __init pghot_sysctl_init(void)
{
}

#endif /* CONFIG_SYSCTL */
