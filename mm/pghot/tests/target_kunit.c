// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the choice of the nearest node, and of what records call a node.
 */
#include <kunit/test.h>
#include <linux/memory-tiers.h>
#include <linux/nodemask.h>
#include <linux/topology.h>

#include "../internal.h"
#include "random.h"

/* The distance table under test. */
static u8 *table;

static int table_distance(int from, int to)
{
	return table[from * MAX_NUMNODES + to];
}

static int nearest_init(struct kunit *test)
{
	table = kvzalloc(MAX_NUMNODES * MAX_NUMNODES, GFP_KERNEL);
	return table ? 0 : -ENOMEM;
}

static void nearest_exit(struct kunit *test)
{
	kvfree(table);
	table = NULL;
}

/* By definition: nothing in @mask is nearer, and no lower number as near. */
static bool is_nearest(int from, int nid, const nodemask_t *mask)
{
	int other;

	if (nodes_empty(*mask))
		return nid == NUMA_NO_NODE;
	if (nid < 0 || nid >= MAX_NUMNODES || !node_isset(nid, *mask))
		return false;

	for (other = 0; other < MAX_NUMNODES; other++) {
		if (!node_isset(other, *mask))
			continue;
		if (table_distance(from, other) < table_distance(from, nid))
			return false;
		if (other < nid && table_distance(from, other) == table_distance(from, nid))
			return false;
	}
	return true;
}

enum table_kind {
	TABLE_ANY,		/* asymmetric, 10..255 */
	TABLE_SYMMETRIC,
	TABLE_TIES,		/* three different distances only */
	TABLE_FLAT,		/* all the same */
	NR_TABLE_KINDS,
};

static void fill_table(enum table_kind kind, int nr, struct rnd_state *rnd)
{
	int from, to;
	u8 d;

	for (from = 0; from < nr; from++) {
		for (to = 0; to < nr; to++) {
			switch (kind) {
			case TABLE_TIES:
				d = 20 + 10 * pghot_random(rnd, 3);
				break;
			case TABLE_FLAT:
				d = REMOTE_DISTANCE;
				break;
			default:
				d = 11 + pghot_random(rnd, 245);
				break;
			}
			if (from == to && kind != TABLE_FLAT)
				d = LOCAL_DISTANCE;
			if (kind == TABLE_SYMMETRIC && to < from)
				d = table_distance(to, from);
			table[from * MAX_NUMNODES + to] = d;
		}
	}
}

static void nearest_random(struct kunit *test)
{
	int nr, from, nid, n, density;
	unsigned int seed, round;
	enum table_kind kind;
	struct rnd_state rnd;
	nodemask_t mask;

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		for (kind = 0; kind < NR_TABLE_KINDS; kind++) {
			/* As many as there may be, at least once. */
			nr = seed == 1 ? MAX_NUMNODES : 1 + pghot_random(&rnd, MAX_NUMNODES);
			fill_table(kind, nr, &rnd);
			for (round = 0; round < 50; round++) {
				/* Empty and full masks among them. */
				density = pghot_random(&rnd, 5);
				nodes_clear(mask);
				for (n = 0; n < nr; n++)
					if (pghot_random(&rnd, 4) < density)
						node_set(n, mask);
				from = pghot_random(&rnd, nr);
				nid = pghot_nearest(from, &mask, table_distance);
				KUNIT_ASSERT_TRUE_MSG(test, is_nearest(from, nid, &mask),
						      "seed %u, kind %d, round %u: %d of %d nodes from %d",
						      seed, kind, round, nid, nr, from);
			}
		}
	}
}

/* Removing the nearest again and again visits all, by distance. */
static void nearest_is_an_order(struct kunit *test)
{
	int from, nid, visited, last;
	struct rnd_state rnd;
	unsigned int seed;
	nodemask_t mask;

	for (seed = 1; seed <= PGHOT_NR_SEEDS; seed++) {
		prandom_seed_state(&rnd, seed);
		fill_table(TABLE_ANY, MAX_NUMNODES, &rnd);
		from = pghot_random(&rnd, MAX_NUMNODES);
		nodes_setall(mask);
		visited = 0;
		last = 0;
		while ((nid = pghot_nearest(from, &mask, table_distance)) != NUMA_NO_NODE) {
			KUNIT_ASSERT_GE(test, table_distance(from, nid), last);
			last = table_distance(from, nid);
			node_clear(nid, mask);
			KUNIT_ASSERT_LE(test, ++visited, MAX_NUMNODES);
		}
		KUNIT_EXPECT_EQ(test, visited, MAX_NUMNODES);
	}
}

static void nearest_of_few(struct kunit *test)
{
	nodemask_t mask = NODE_MASK_NONE;
	struct rnd_state rnd;
	int nid;

	prandom_seed_state(&rnd, 1);
	fill_table(TABLE_ANY, MAX_NUMNODES, &rnd);
	KUNIT_EXPECT_EQ(test, pghot_nearest(0, &mask, table_distance), NUMA_NO_NODE);
	for (nid = 0; nid < MAX_NUMNODES; nid++) {
		mask = nodemask_of_node(nid);
		KUNIT_ASSERT_EQ(test, pghot_nearest(0, &mask, table_distance), nid);
		KUNIT_ASSERT_EQ(test, pghot_nearest(MAX_NUMNODES - 1, &mask, table_distance),
				nid);
	}
}

/* The example of the test machine: accesses from either side go to that side. */
static void nearest_two_sockets(struct kunit *test)
{
	static const u8 distances[3][3] = {
		{ 10, 12, 50 },
		{ 12, 10, 50 },
		{ 50, 50, 10 },
	};
	nodemask_t mask = NODE_MASK_NONE;
	int from, to;

	if (MAX_NUMNODES < 3)
		kunit_skip(test, "needs a kernel for three nodes");
	for (from = 0; from < 3; from++)
		for (to = 0; to < 3; to++)
			table[from * MAX_NUMNODES + to] = distances[from][to];
	node_set(0, mask);
	node_set(1, mask);
	KUNIT_EXPECT_EQ(test, pghot_nearest(0, &mask, table_distance), 0);
	KUNIT_EXPECT_EQ(test, pghot_nearest(1, &mask, table_distance), 1);
	KUNIT_EXPECT_EQ(test, pghot_nearest(2, &mask, table_distance), 0);
	node_clear(0, mask);
	KUNIT_EXPECT_EQ(test, pghot_nearest(0, &mask, table_distance), 1);
	KUNIT_EXPECT_EQ(test, pghot_nearest(2, &mask, table_distance), 1);
}

/* ===== This machine ===== */

static void dram_is_top_tier_memory(struct kunit *test)
{
	nodemask_t dram;
	int nid;

	pghot_dram_nodes(&dram);
	KUNIT_EXPECT_FALSE(test, nodes_empty(dram));
	for (nid = 0; nid < MAX_NUMNODES; nid++)
		KUNIT_EXPECT_EQ_MSG(test, !!node_isset(nid, dram),
				    node_state(nid, N_MEMORY) && node_is_toptier(nid),
				    "node %d", nid);
}

/* An index of a record leads back to the node, or to the nearest DRAM node. */
static void index_and_node(struct kunit *test)
{
	unsigned int index;
	nodemask_t dram;
	int nid;

	pghot_dram_nodes(&dram);
	for_each_online_node(nid) {
		index = pghot_node_index[nid];
		KUNIT_ASSERT_LE(test, index, PGHOT_NODE_NONE);
		if (index == PGHOT_NODE_NONE) {
			/* Only where there are more nodes than indices. */
			KUNIT_EXPECT_GT(test, nodes_weight(dram), PGHOT_NR_DRAM);
			continue;
		}
		KUNIT_EXPECT_EQ_MSG(test, pghot_index_to_node(index),
				    pghot_nearest(nid, &dram, pghot_distance),
				    "node %d", nid);
		if (node_isset(nid, dram))
			KUNIT_EXPECT_EQ(test, pghot_index_to_node(index), nid);
	}
}

static void index_codes(struct kunit *test)
{
	unsigned int index;
	int nid;

	/* No node is called denied, whatever the machine. */
	for (nid = 0; nid < MAX_NUMNODES; nid++)
		KUNIT_EXPECT_NE(test, pghot_node_index[nid], PGHOT_NODE_DENIED);
	KUNIT_EXPECT_EQ(test, pghot_index_to_node(PGHOT_NODE_NONE), NUMA_NO_NODE);
	KUNIT_EXPECT_EQ(test, pghot_index_to_node(PGHOT_NODE_DENIED), NUMA_NO_NODE);
	KUNIT_EXPECT_EQ(test, pghot_index_to_node(UINT_MAX), NUMA_NO_NODE);
	for (index = 0; index < PGHOT_NR_DRAM; index++) {
		nid = pghot_index_to_node(index);
		KUNIT_EXPECT_GE(test, nid, NUMA_NO_NODE);
		KUNIT_EXPECT_LT(test, nid, MAX_NUMNODES);
	}
}

static struct kunit_case target_cases[] = {
	KUNIT_CASE(nearest_random),
	KUNIT_CASE(nearest_is_an_order),
	KUNIT_CASE(nearest_of_few),
	KUNIT_CASE(nearest_two_sockets),
	KUNIT_CASE(dram_is_top_tier_memory),
	KUNIT_CASE(index_and_node),
	KUNIT_CASE(index_codes),
	{}
};

static struct kunit_suite target_suite = {
	.name		= "pghot_target",
	.init		= nearest_init,
	.exit		= nearest_exit,
	.test_cases	= target_cases,
};

kunit_test_suite(target_suite);
