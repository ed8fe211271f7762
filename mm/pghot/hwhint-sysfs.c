// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/pghot/sources/hwhints: what samples, how, and what it costs.
 */
#include <linux/kobject.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/sysfs.h>
#include <linux/time64.h>

#include "hwhint.h"
#include "internal.h"

/* ===== Knobs ===== */

static ssize_t period_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	struct pghot_hint_config config;

	if (pghot_hint_is_auto())
		return sysfs_emit(buf, "auto\n");
	pghot_hint_get_config(&config);
	return sysfs_emit(buf, "%u\n", config.period);
}

static ssize_t period_store(struct kobject *kobj, struct kobj_attribute *attr,
			    const char *buf, size_t count)
{
	long long val;
	int err;

	if (sysfs_streq(buf, "auto")) {
		err = pghot_hint_set_auto();
		return err ?: count;
	}
	err = pghot_parse_range(buf, 0, UINT_MAX, &val);
	if (!err)
		err = pghot_hint_set_period(val);
	return err ?: count;
}

static struct kobj_attribute period_attr = __ATTR_RW(period);

static ssize_t sampling_budget_show(struct kobject *kobj,
				    struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", pghot_hint_get_budget());
}

static ssize_t sampling_budget_store(struct kobject *kobj,
				     struct kobj_attribute *attr,
				     const char *buf, size_t count)
{
	long long val;
	int err;

	err = pghot_parse_range(buf, 1, PGHOT_HINT_BUDGET_MAX, &val);
	if (err)
		return err;
	pghot_hint_set_budget(val);
	return count;
}

static struct kobj_attribute sampling_budget_attr = __ATTR_RW(sampling_budget);

static ssize_t l3miss_only_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	struct pghot_hint_config config;

	pghot_hint_get_config(&config);
	return sysfs_emit(buf, "%d\n", config.l3miss_only);
}

static ssize_t l3miss_only_store(struct kobject *kobj,
				 struct kobj_attribute *attr,
				 const char *buf, size_t count)
{
	long long val;
	int err;

	err = pghot_parse_range(buf, 0, 1, &val);
	if (!err)
		err = pghot_hint_set_l3miss(val);
	return err ?: count;
}

static struct kobj_attribute l3miss_only_attr = __ATTR_RW(l3miss_only);

/* Between the latencies of DRAM and of CXL memory. */
static unsigned int pghot_latency_threshold = 512;

/* Makes of the two files the one number that units know. */
static DEFINE_MUTEX(pghot_latency_lock);

static ssize_t latency_filter_show(struct kobject *kobj,
				   struct kobj_attribute *attr, char *buf)
{
	struct pghot_hint_config config;

	pghot_hint_get_config(&config);
	return sysfs_emit(buf, "%d\n", !!config.latency);
}

static ssize_t latency_filter_store(struct kobject *kobj,
				    struct kobj_attribute *attr,
				    const char *buf, size_t count)
{
	long long val;
	int err;

	err = pghot_parse_range(buf, 0, 1, &val);
	if (err)
		return err;

	guard(mutex)(&pghot_latency_lock);
	err = pghot_hint_set_latency(val ? pghot_latency_threshold : 0);
	return err ?: count;
}

static struct kobj_attribute latency_filter_attr = __ATTR_RW(latency_filter);

static ssize_t latency_threshold_show(struct kobject *kobj,
				      struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(pghot_latency_threshold));
}

static ssize_t latency_threshold_store(struct kobject *kobj,
				       struct kobj_attribute *attr,
				       const char *buf, size_t count)
{
	struct pghot_hint_config config;
	long long val;
	int err;

	err = pghot_parse_range(buf, PGHOT_HINT_LATENCY_STEP, PGHOT_HINT_LATENCY_MAX,
				&val);
	if (err)
		return err;
	if (val % PGHOT_HINT_LATENCY_STEP)
		return -EINVAL;

	guard(mutex)(&pghot_latency_lock);
	pghot_hint_get_config(&config);
	if (config.latency)
		err = pghot_hint_set_latency(val);
	if (err)
		return err;
	WRITE_ONCE(pghot_latency_threshold, val);
	return count;
}

static struct kobj_attribute latency_threshold_attr = __ATTR_RW(latency_threshold);

static ssize_t look_around_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", pghot_hint_looks_around());
}

static ssize_t look_around_store(struct kobject *kobj,
				 struct kobj_attribute *attr,
				 const char *buf, size_t count)
{
	long long val;
	int err;

	err = pghot_parse_range(buf, 0, 1, &val);
	if (err)
		return err;
	pghot_hint_set_look_around(val);
	return count;
}

static struct kobj_attribute look_around_attr = __ATTR_RW(look_around);

/* ===== State ===== */

static ssize_t unit_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	const struct pghot_hint_unit *unit = pghot_hint_used_unit();

	return sysfs_emit(buf, "%s\n", unit ? unit->name : "not present");
}

static struct kobj_attribute unit_attr = __ATTR_RO(unit);

static ssize_t current_period_show(struct kobject *kobj,
				   struct kobj_attribute *attr, char *buf)
{
	struct pghot_hint_config config;

	pghot_hint_get_config(&config);
	return sysfs_emit(buf, "%u\n", config.period);
}

static struct kobj_attribute current_period_attr = __ATTR_RO(current_period);

static ssize_t gave_way_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%lu\n", pghot_hint_times_given_way());
}

static struct kobj_attribute gave_way_attr = __ATTR_RO(gave_way);

static ssize_t paused_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%lu\n", pghot_hint_times_paused());
}

static struct kobj_attribute paused_attr = __ATTR_RO(paused);

static ssize_t interrupt_us_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	struct pghot_hint_cost cost;

	pghot_hint_get_cost(&cost);
	return sysfs_emit(buf, "%llu\n", div_u64(cost.irq_ns, NSEC_PER_USEC));
}

static struct kobj_attribute interrupt_us_attr = __ATTR_RO(interrupt_us);

static ssize_t drain_us_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	struct pghot_hint_cost cost;

	pghot_hint_get_cost(&cost);
	return sysfs_emit(buf, "%llu\n", div_u64(cost.drain_ns, NSEC_PER_USEC));
}

static struct kobj_attribute drain_us_attr = __ATTR_RO(drain_us);

static ssize_t look_us_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	struct pghot_look_stats stats;

	pghot_look_get_stats(&stats);
	return sysfs_emit(buf, "%llu\n", div_u64(stats.ns, NSEC_PER_USEC));
}

static struct kobj_attribute look_us_attr = __ATTR_RO(look_us);

#define PGHOT_LOOK_ATTR(_name)						\
static ssize_t look_##_name##_show(struct kobject *kobj,		\
				   struct kobj_attribute *attr,		\
				   char *buf)				\
{									\
	struct pghot_look_stats stats;					\
									\
	pghot_look_get_stats(&stats);					\
	return sysfs_emit(buf, "%llu\n", stats._name);			\
}									\
									\
static struct kobj_attribute look_##_name##_attr = __ATTR_RO(look_##_name)

PGHOT_LOOK_ATTR(areas);
PGHOT_LOOK_ATTR(refused);
PGHOT_LOOK_ATTR(found);
PGHOT_LOOK_ATTR(late);

static struct attribute *pghot_hint_attrs[] = {
	&unit_attr.attr,
	&period_attr.attr,
	&sampling_budget_attr.attr,
	&l3miss_only_attr.attr,
	&latency_filter_attr.attr,
	&latency_threshold_attr.attr,
	&look_around_attr.attr,
	&current_period_attr.attr,
	&gave_way_attr.attr,
	&paused_attr.attr,
	&interrupt_us_attr.attr,
	&drain_us_attr.attr,
	&look_us_attr.attr,
	&look_areas_attr.attr,
	&look_refused_attr.attr,
	&look_found_attr.attr,
	&look_late_attr.attr,
	NULL
};

const struct attribute_group pghot_hint_group = {
	.attrs = pghot_hint_attrs,
};
