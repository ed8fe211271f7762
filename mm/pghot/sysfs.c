// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/pghot: knobs, state and sources. One value a file, described in
 * Documentation/ABI/testing/sysfs-kernel-mm-pghot.
 */
#define pr_fmt(fmt) "pghot: " fmt

#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "internal.h"

static struct kobject *pghot_kobj;
static struct kobject *pghot_sources_kobj;

/* ===== Knobs ===== */

struct pghot_knob_attr {
	struct kobj_attribute	attr;
	enum pghot_knob		knob;
};

static ssize_t knob_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	struct pghot_knob_attr *ka = container_of(attr, struct pghot_knob_attr, attr);

	return sysfs_emit(buf, "%d\n", pghot_knob_get(ka->knob));
}

static ssize_t knob_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t count)
{
	struct pghot_knob_attr *ka = container_of(attr, struct pghot_knob_attr, attr);
	long long val;
	int err;

	err = pghot_parse_number(buf, &val);
	if (!err)
		err = pghot_knob_set(ka->knob, val);
	return err ?: count;
}

#define PGHOT_KNOB_ATTR(_name, _knob)					\
static struct pghot_knob_attr _name##_attr = {				\
	.attr = __ATTR(_name, 0644, knob_show, knob_store),		\
	.knob = _knob,							\
}

PGHOT_KNOB_ATTR(freq_threshold, PGHOT_FREQ_THRESHOLD);
PGHOT_KNOB_ATTR(promote_window_ms, PGHOT_PROMOTE_WINDOW_MS);
PGHOT_KNOB_ATTR(target_nid, PGHOT_TARGET_NID);
PGHOT_KNOB_ATTR(promote_rate_limit_MBps, PGHOT_PROMOTE_RATE_LIMIT_MBPS);
PGHOT_KNOB_ATTR(kmigrated_sleep_ms, PGHOT_KMIGRATED_SLEEP_MS);
PGHOT_KNOB_ATTR(kmigrated_batch_nr, PGHOT_KMIGRATED_BATCH_NR);

static ssize_t enabled_sources_show(struct kobject *kobj,
				    struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", pghot_enabled_sources());
}

static ssize_t enabled_sources_store(struct kobject *kobj,
				     struct kobj_attribute *attr,
				     const char *buf, size_t count)
{
	unsigned long mask;
	int err;

	err = pghot_parse_sources(buf, &mask);
	if (!err)
		err = pghot_set_sources(mask);
	return err ?: count;
}

static struct kobj_attribute enabled_sources_attr = __ATTR_RW(enabled_sources);

/* ===== State ===== */

static ssize_t bytes_in_use_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", pghot_bytes_in_use());
}

static struct kobj_attribute bytes_in_use_attr = __ATTR_RO(bytes_in_use);

static ssize_t alloc_failures_show(struct kobject *kobj,
				   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", pghot_alloc_failures());
}

static struct kobj_attribute alloc_failures_attr = __ATTR_RO(alloc_failures);

static ssize_t status_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	const char *status;

	if (!pghot_nr_nodes())
		status = "no lower tier";
	else if (pghot_enabled_sources())
		status = "active";
	else
		status = "disabled";
	return sysfs_emit(buf, "%s\n", status);
}

static struct kobj_attribute status_attr = __ATTR_RO(status);

static struct attribute *pghot_attrs[] = {
	&enabled_sources_attr.attr,
	&freq_threshold_attr.attr.attr,
	&promote_window_ms_attr.attr.attr,
	&target_nid_attr.attr.attr,
	&promote_rate_limit_MBps_attr.attr.attr,
	&kmigrated_sleep_ms_attr.attr.attr,
	&kmigrated_batch_nr_attr.attr.attr,
	&bytes_in_use_attr.attr,
	&alloc_failures_attr.attr,
	&status_attr.attr,
	NULL
};

static const struct attribute_group pghot_group = {
	.attrs = pghot_attrs,
};

/* ===== Sources ===== */

struct pghot_source_dir {
	struct kobject			kobj;
	const struct pghot_source	*src;
};

static ssize_t enabled_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	struct pghot_source_dir *dir = container_of(kobj, struct pghot_source_dir, kobj);

	return sysfs_emit(buf, "%d\n", !!(pghot_enabled_sources() & BIT(dir->src->id)));
}

static ssize_t enabled_store(struct kobject *kobj, struct kobj_attribute *attr,
			     const char *buf, size_t count)
{
	struct pghot_source_dir *dir = container_of(kobj, struct pghot_source_dir, kobj);
	long long val;
	int err;

	err = pghot_parse_range(buf, 0, 1, &val);
	if (!err)
		err = pghot_enable_source(dir->src->id, val);
	return err ?: count;
}

static struct kobj_attribute enabled_attr = __ATTR_RW(enabled);

static struct attribute *pghot_source_attrs[] = {
	&enabled_attr.attr,
	NULL
};
ATTRIBUTE_GROUPS(pghot_source);

static void pghot_source_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct pghot_source_dir, kobj));
}

static const struct kobj_type pghot_source_ktype = {
	.release	= pghot_source_release,
	.sysfs_ops	= &kobj_sysfs_ops,
	.default_groups	= pghot_source_groups,
};

/* Make the directory of a source. Returns 0 or a negative error number. */
int pghot_sysfs_add_source(const struct pghot_source *src)
{
	struct pghot_source_dir *dir;
	int err;

	dir = kzalloc_obj(*dir);
	if (!dir)
		return -ENOMEM;
	dir->src = src;

	err = kobject_init_and_add(&dir->kobj, &pghot_source_ktype,
				   pghot_sources_kobj, "%s", src->name);
	if (!err && src->knobs)
		err = sysfs_create_group(&dir->kobj, src->knobs);
	if (err)
		kobject_put(&dir->kobj);
	return err;
}

/* Before tiers are looked at. Returns 0 or a negative error number. */
int __init pghot_sysfs_init(void)
{
	int err, id;

	pghot_kobj = kobject_create_and_add("pghot", mm_kobj);
	if (!pghot_kobj)
		return -ENOMEM;

	err = sysfs_create_group(pghot_kobj, &pghot_group);
	if (err)
		goto out;

	err = -ENOMEM;
	pghot_sources_kobj = kobject_create_and_add("sources", pghot_kobj);
	if (!pghot_sources_kobj)
		goto out;

	err = pghot_sysfs_init_nodes(pghot_kobj);
	if (err)
		goto out;

	/* A source without files can still be enabled by its bit. */
	for (id = 0; id < PGHOT_NR_SOURCES; id++)
		if (pghot_source(id) && pghot_sysfs_add_source(pghot_source(id)))
			pr_warn("%s: no files in sysfs\n", pghot_source(id)->name);
	return 0;
out:
	kobject_put(pghot_sources_kobj);
	kobject_put(pghot_kobj);
	return err;
}
