// SPDX-License-Identifier: GPL-2.0
/*
 * The owner's placement is never violated: memory policies of mappings and of
 * tasks, cpusets, and the nodes that a memcg may use.
 *
 * A task whose policy says where its memory goes makes no hint faults. What it
 * has in common with a task that has no such policy does, and there it is pghot
 * that has to look at all owners.
 */
#include <signal.h>
#include <stdatomic.h>
#include <linux/mempolicy.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "pghot_util.h"

#ifndef MPOL_F_NUMA_BALANCING
#define MPOL_F_NUMA_BALANCING	0x2000
#endif
#ifndef MPOL_WEIGHTED_INTERLEAVE
#define MPOL_WEIGHTED_INTERLEAVE	6
#endif
#ifndef MPOL_PREFERRED_MANY
#define MPOL_PREFERRED_MANY	5
#endif

#define NR	64

/* What a test and a child say to each other. */
struct talk {
	atomic_int go;
	atomic_int failed;
	atomic_long rounds;
	atomic_long moved;
};

static struct talk *new_talk(void)
{
	return mmap(NULL, sizeof(struct talk), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* A child without a policy, on @nid, that goes on touching once it may. */
static pid_t start_toucher(struct talk *talk, char *p, int nid)
{
	pid_t pid = pg_fork();

	if (pid)
		return pid;
	if (pg_run_on(nid))
		_exit(1);
	while (!talk->go)
		pg_sleep_ms(1);
	for (;;) {
		pg_touch_a_while(p, NR, 1);
		talk->rounds++;
	}
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ===== Owners who want their memory where it is ===== */

/* How a task says that memory belongs on the slow node. */
struct claim {
	bool of_task;		/* a policy of the task, not of the mapping */
	bool cpuset;		/* no policy, but a cpuset */
	int mode;
	bool with_dram;		/* the slow node and DRAM, not the slow one only */
};

FIXTURE(owner)
{
	struct talk *talk;
	char *p;
};

FIXTURE_VARIANT(owner)
{
	struct claim claim;
};

FIXTURE_VARIANT_ADD(owner, mapping_bind)
{
	.claim = { .mode = MPOL_BIND, },
};

FIXTURE_VARIANT_ADD(owner, task_bind)
{
	.claim = { .mode = MPOL_BIND, .of_task = true, },
};

FIXTURE_VARIANT_ADD(owner, mapping_preferred)
{
	.claim = { .mode = MPOL_PREFERRED, },
};

FIXTURE_VARIANT_ADD(owner, task_preferred_many)
{
	.claim = { .mode = MPOL_PREFERRED_MANY, .of_task = true, },
};

FIXTURE_VARIANT_ADD(owner, mapping_interleave)
{
	.claim = { .mode = MPOL_INTERLEAVE, .with_dram = true, },
};

FIXTURE_VARIANT_ADD(owner, task_interleave)
{
	.claim = { .mode = MPOL_INTERLEAVE, .of_task = true, .with_dram = true, },
};

FIXTURE_VARIANT_ADD(owner, task_weighted_interleave)
{
	.claim = {
		.mode = MPOL_WEIGHTED_INTERLEAVE,
		.of_task = true,
		.with_dram = true,
	},
};

FIXTURE_VARIANT_ADD(owner, cpuset)
{
	.claim = { .cpuset = true, },
};

FIXTURE_SETUP(owner)
{
	const char *missing = pg_start(PG_NEED_PROMOTION |
				       (variant->claim.cpuset ? PG_NEED_CGROUP : 0));

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	self->talk = new_talk();
	ASSERT_NE(MAP_FAILED, self->talk);
	self->p = pg_map_slow(NR);
	ASSERT_NE(NULL, self->p);
}

FIXTURE_TEARDOWN(owner)
{
	pg_stop();
}

/* Make the caller, who has mapped @p, say that it belongs on the slow node. */
static int make_claim(const struct claim *v, char *p)
{
	int nids[] = { pg_m.slow, pg_m.dram[0] }, nr = v->with_dram ? 2 : 1;
	char nid[16];

	if (v->cpuset) {
		const char *group = pg_cgroup("slow");

		snprintf(nid, sizeof(nid), "%d", pg_m.slow);
		return !group ? -ENOENT :
		       pg_cgroup_write(group, "cpuset.mems", nid) ?:
		       pg_cgroup_enter(group);
	}
	return v->of_task ? pg_policy(v->mode, nids, nr) :
			    pg_mbind(p, NR, v->mode, nids, nr);
}

/* The owner is the only one who uses it. */
TEST_F_TIMEOUT(owner, alone, PG_TIMEOUT)
{
	struct talk *talk = self->talk;
	pid_t pid;
	char *q;

	pid = pg_fork();
	if (!pid) {
		/* Not what the parent has mapped: that must stay unclaimed. */
		char *p = pg_map_slow(NR);

		pg_unmap(self->p, NR);
		talk->failed = !p || make_claim(&variant->claim, p);
		talk->go = 1;
		while (!talk->failed) {
			pg_touch_a_while(p, NR, 1);
			talk->moved = NR - pg_on(p, NR, 1, pg_m.slow);
			talk->rounds++;
		}
		_exit(1);
	}
	ASSERT_GT(pid, 0);
	ASSERT_TRUE(pg_wait_until(talk->go));
	ASSERT_FALSE(talk->failed);

	/* Memory that nobody has claimed leaves meanwhile. */
	ASSERT_EQ(0, pg_sources(true));
	q = self->p;
	EXPECT_TRUE(pg_touch_until(q, NR, 1, pg_on_dram(q, NR, 1) == NR));
	talk->rounds = 0;
	EXPECT_TRUE(pg_wait_until(talk->rounds >= 50));
	EXPECT_EQ(0, talk->moved);
	end(pid);
}

/* Another one uses it too, and has no policy. */
TEST_F_TIMEOUT(owner, shared, PG_TIMEOUT)
{
	struct pg_counts c, now;
	pid_t pid;

	pid = start_toucher(self->talk, self->p, pg_m.dram[0]);
	ASSERT_GT(pid, 0);
	ASSERT_EQ(0, make_claim(&variant->claim, self->p));

	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	self->talk->go = 1;
	EXPECT_TRUE(pg_wait_until(({
		now = c;
		pg_since(&now);
		now.skipped[PG_DENIED] >= NR;
	})));
	/* For some time more. */
	self->talk->rounds = 0;
	EXPECT_TRUE(pg_wait_until(self->talk->rounds >= 20));
	EXPECT_EQ(NR, pg_on(self->p, NR, 1, pg_m.slow));
	end(pid);
}

/* ===== Owners who allow some nodes ===== */

FIXTURE(allowed)
{
	struct talk *talk;
	char *p;
};

FIXTURE_VARIANT(allowed)
{
	int mode;
	bool with_slow;
};

FIXTURE_VARIANT_ADD(allowed, bind_dram)
{
	.mode = MPOL_BIND,
};

FIXTURE_VARIANT_ADD(allowed, bind_and_balance)
{
	.mode = MPOL_BIND | MPOL_F_NUMA_BALANCING,
	.with_slow = true,
};

FIXTURE_SETUP(allowed)
{
	const char *missing = pg_start(PG_NEED_PROMOTION | PG_NEED_2DRAM);

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	self->talk = new_talk();
	ASSERT_NE(MAP_FAILED, self->talk);
	self->p = pg_map_slow(NR);
	ASSERT_NE(NULL, self->p);
}

FIXTURE_TEARDOWN(allowed)
{
	pg_stop();
}

/* Used on one DRAM node, allowed on the other one only: that is where it goes. */
TEST_F_TIMEOUT(allowed, other_node, PG_TIMEOUT)
{
	int nids[] = { pg_m.dram[0], pg_m.slow };
	pid_t pid;

	pid = start_toucher(self->talk, self->p, pg_m.dram[1]);
	ASSERT_GT(pid, 0);
	ASSERT_EQ(0, pg_mbind(self->p, NR, variant->mode, nids,
			      variant->with_slow ? 2 : 1));
	ASSERT_EQ(0, pg_sources(true));
	self->talk->go = 1;
	EXPECT_TRUE(pg_wait_until(pg_on_dram(self->p, NR, 1) == NR));
	EXPECT_EQ(NR, pg_on(self->p, NR, 1, pg_m.dram[0]));
	end(pid);
}

/* The owner alone, with a policy that leaves the choice to the kernel. */
FIXTURE(balanced)
{
	char *p;
};

FIXTURE_SETUP(balanced)
{
	const char *missing = pg_start(PG_NEED_PROMOTION | PG_NEED_2DRAM);

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
	self->p = pg_map_slow(NR);
	ASSERT_NE(NULL, self->p);
}

FIXTURE_TEARDOWN(balanced)
{
	pg_stop();
}

TEST_F_TIMEOUT(balanced, own_node, PG_TIMEOUT)
{
	int nids[] = { pg_m.dram[0], pg_m.slow };
	char *q;

	q = pg_map_slow(NR);
	ASSERT_NE(NULL, q);
	ASSERT_EQ(0, pg_mbind(self->p, NR, MPOL_BIND | MPOL_F_NUMA_BALANCING, nids, 2));
	ASSERT_EQ(0, pg_sources(true));

	/* Used from a node that is not allowed, it does not get there ... */
	ASSERT_EQ(0, pg_run_on(pg_m.dram[1]));
	EXPECT_TRUE(pg_touch_until(q, NR, 1, ({
		pg_touch(self->p, NR, 1);
		pg_on_dram(q, NR, 1) == NR;
	})));
	EXPECT_EQ(0, pg_on(self->p, NR, 1, pg_m.dram[1]));

	/* ... and from the one that is, it does. */
	ASSERT_EQ(0, pg_run_on(pg_m.dram[0]));
	EXPECT_TRUE(pg_touch_until(self->p, NR, 1,
				   pg_on(self->p, NR, 1, pg_m.dram[0]) == NR));
}

/* ===== The group that pays for the page ===== */

FIXTURE(memcg)
{
};

FIXTURE_SETUP(memcg)
{
	const char *missing = pg_start(PG_NEED_PROMOTION | PG_NEED_CGROUP);

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pg_any_hint_fault_is_hot());
}

FIXTURE_TEARDOWN(memcg)
{
	pg_stop();
}

TEST_F_TIMEOUT(memcg, cpuset_of_another_group, PG_TIMEOUT)
{
	const char *group = pg_cgroup("payer");
	struct pg_counts c, now;
	char nid[16], *p;
	pid_t pid;

	ASSERT_NE(NULL, group);
	p = mmap(NULL, NR * pg_page, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);

	/* The group pays for all pages, and then may only use the slow node. */
	pid = pg_fork();
	if (!pid) {
		if (pg_cgroup_enter(group))
			_exit(1);
		pg_fill(p, NR, 3);
		_exit(0);
	}
	ASSERT_GT(pid, 0);
	ASSERT_TRUE(pg_join(pid));
	pg_touch(p, NR, 1);
	ASSERT_TRUE(pg_to_slow(p, NR));
	snprintf(nid, sizeof(nid), "%d", pg_m.slow);
	ASSERT_EQ(0, pg_cgroup_write(group, "cpuset.mems", nid));

	/* This process, which is not in it, uses them. */
	pg_count(&c);
	ASSERT_EQ(0, pg_sources(true));
	EXPECT_TRUE(pg_touch_until(p, NR, 1, ({
		now = c;
		pg_since(&now);
		now.skipped[PG_DENIED] >= NR;
	})));
	EXPECT_EQ(NR, pg_on(p, NR, 1, pg_m.slow));

	/* When the group may use DRAM, they go there. */
	snprintf(nid, sizeof(nid), "%d,%d", pg_m.slow, pg_m.dram[0]);
	ASSERT_EQ(0, pg_cgroup_write(group, "cpuset.mems", nid));
	/* Denied pages are left alone for this epoch and the next. */
	ASSERT_EQ(0, pg_set("promote_window_ms", 200));
	EXPECT_TRUE(pg_touch_until(p, NR, 1,
				   pg_on(p, NR, 1, pg_m.dram[0]) == NR));
	EXPECT_EQ(0, pg_damage(p, NR, 3));
}

int main(int argc, char **argv)
{
	return pg_main(argc, argv, test_harness_run);
}
