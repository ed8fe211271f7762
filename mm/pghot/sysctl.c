// SPDX-License-Identifier: GPL-2.0
/*
 * vm.pghot_*: those knobs that belong into sysctl.d. The same values as in
 * /sys/kernel/mm/pghot, with the same ranges and errors.
 */
#include <linux/init.h>
#include <linux/sysctl.h>

#include "internal.h"

#ifdef CONFIG_SYSCTL

static int pghot_sysctl_knob(const struct ctl_table *table, int write,
			     void *buffer, size_t *lenp, loff_t *ppos)
{
	enum pghot_knob knob = (enum pghot_knob)(uintptr_t)table->extra1;
	int val = pghot_knob_get(knob);
	const struct ctl_table t = {
		.data	= &val,
		.maxlen	= sizeof(val),
		.mode	= table->mode,
	};
	int err;

	err = proc_dointvec(&t, write, buffer, lenp, ppos);
	if (err || !write)
		return err;
	return pghot_knob_set(knob, val);
}

static int pghot_sysctl_sources(const struct ctl_table *table, int write,
				void *buffer, size_t *lenp, loff_t *ppos)
{
	int val = pghot_enabled_sources();
	const struct ctl_table t = {
		.data	= &val,
		.maxlen	= sizeof(val),
		.mode	= table->mode,
	};
	int err;

	err = proc_dointvec(&t, write, buffer, lenp, ppos);
	if (err || !write)
		return err;
	return val < 0 ? -ERANGE : pghot_set_sources(val);
}

#define PGHOT_SYSCTL(_name, _knob) {				\
	.procname	= _name,				\
	.maxlen		= sizeof(int),				\
	.mode		= 0644,					\
	.proc_handler	= pghot_sysctl_knob,			\
	.extra1		= (void *)(uintptr_t)(_knob),		\
}

static const struct ctl_table pghot_sysctls[] = {
	{
		.procname	= "pghot_enabled_sources",
		.maxlen		= sizeof(int),
		.mode		= 0644,
		.proc_handler	= pghot_sysctl_sources,
	},
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
