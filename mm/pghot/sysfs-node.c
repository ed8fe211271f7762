// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/pghot/nodes/nodeN: what happened on a lower-tier node.
 */
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "internal.h"

static struct kobject *pghot_nodes_kobj;

static struct pghot_node *to_pghot_node(struct kobject *kobj)
{
	return container_of(kobj, struct pghot_node, kobj);
}

#define PGHOT_NODE_ATTR(_name, _expr)					\
static ssize_t _name##_show(struct kobject *kobj,			\
			    struct kobj_attribute *attr, char *buf)	\
{									\
	struct pghot_node *node = to_pghot_node(kobj);			\
									\
	return sysfs_emit(buf, "%lu\n", _expr);				\
}									\
static struct kobj_attribute _name##_attr = __ATTR_RO(_name)

PGHOT_NODE_ATTR(records, READ_ONCE(node->nr_sections) * PAGES_PER_SECTION);
PGHOT_NODE_ATTR(visited, READ_ONCE(node->visited));
PGHOT_NODE_ATTR(candidates, READ_ONCE(node->candidates));
PGHOT_NODE_ATTR(promoted, READ_ONCE(node->promoted));
PGHOT_NODE_ATTR(demoted_hot, atomic_long_read(&node->demoted_hot));
PGHOT_NODE_ATTR(throttle, (unsigned long)READ_ONCE(node->feedback.throttle));
PGHOT_NODE_ATTR(skipped_cold, READ_ONCE(node->skipped[PGHOT_COLD]));
PGHOT_NODE_ATTR(skipped_gone, READ_ONCE(node->skipped[PGHOT_GONE]));
PGHOT_NODE_ATTR(skipped_unmovable, READ_ONCE(node->skipped[PGHOT_UNMOVABLE]));
PGHOT_NODE_ATTR(skipped_denied, READ_ONCE(node->skipped[PGHOT_DENIED]));
PGHOT_NODE_ATTR(skipped_busy, READ_ONCE(node->skipped[PGHOT_BUSY]));
PGHOT_NODE_ATTR(skipped_pinned, READ_ONCE(node->skipped[PGHOT_PINNED]));
PGHOT_NODE_ATTR(skipped_nospace, READ_ONCE(node->skipped[PGHOT_NOSPACE]));
PGHOT_NODE_ATTR(skipped_ratelimit, READ_ONCE(node->skipped[PGHOT_RATELIMIT]));
PGHOT_NODE_ATTR(skipped_failed, READ_ONCE(node->skipped[PGHOT_FAILED]));

static ssize_t target_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(to_pghot_node(kobj)->target));
}

static struct kobj_attribute target_attr = __ATTR_RO(target);

static struct attribute *pghot_node_attrs[] = {
	&records_attr.attr,
	&visited_attr.attr,
	&candidates_attr.attr,
	&promoted_attr.attr,
	&target_attr.attr,
	&demoted_hot_attr.attr,
	&throttle_attr.attr,
	&skipped_cold_attr.attr,
	&skipped_gone_attr.attr,
	&skipped_unmovable_attr.attr,
	&skipped_denied_attr.attr,
	&skipped_busy_attr.attr,
	&skipped_pinned_attr.attr,
	&skipped_nospace_attr.attr,
	&skipped_ratelimit_attr.attr,
	&skipped_failed_attr.attr,
	NULL
};
ATTRIBUTE_GROUPS(pghot_node);

static void pghot_node_release(struct kobject *kobj)
{
	kfree(to_pghot_node(kobj));
}

static const struct kobj_type pghot_node_ktype = {
	.release	= pghot_node_release,
	.sysfs_ops	= &kobj_sysfs_ops,
	.default_groups	= pghot_node_groups,
};

/*
 * Make the directory of @node, which belongs to it from then on: on failure
 * @node has been freed. Returns 0 or a negative error number.
 */
int pghot_sysfs_add_node(struct pghot_node *node)
{
	int err;

	err = kobject_init_and_add(&node->kobj, &pghot_node_ktype,
				   pghot_nodes_kobj, "node%d", node->nid);
	if (err)
		kobject_put(&node->kobj);
	return err;
}

/* Remove the directory of @node and free @node when nobody reads it any more. */
void pghot_sysfs_remove_node(struct pghot_node *node)
{
	kobject_del(&node->kobj);
	kobject_put(&node->kobj);
}

int __init pghot_sysfs_init_nodes(struct kobject *parent)
{
	pghot_nodes_kobj = kobject_create_and_add("nodes", parent);
	return pghot_nodes_kobj ? 0 : -ENOMEM;
}
