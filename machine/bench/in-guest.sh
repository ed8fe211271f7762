# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the scripts that the bench makes for the guest use.

set -eu

# shellcheck disable=SC2034 # for the rows
A=/sys/kernel/mm/damon/admin/kdamonds
SCAN=/sys/kernel/debug/sched/numa_balancing
P=/sys/kernel/mm/pghot

fail() { echo "bench: $*" >&2; exit 1; }

# put PATH VALUE
put() {
	[ -e "$1" ] || fail "this kernel has no $1"
	echo "$2" >"$1" || fail "$1 does not take '$2'"
}

need() { [ -e "$1" ] || fail "this row needs $1, which this kernel does not have"; }

# The node without CPUs, and its physical addresses
slow=
for n in /sys/devices/system/node/node[0-9]*; do
	[ -n "$(cat "$n/cpulist")" ] || slow=${n##*/node}
done
[ -n "$slow" ] || fail "this machine has no node without CPUs"
# shellcheck disable=SC2046
set -- $(awk -v want="$slow," '
	$1 == "Node" { here = $2 == want }
	here && $1 == "spanned" { pages = $2 }
	here && $1 == "start_pfn:" && pages {
		if (!end || $2 * 4096 < start) start = $2 * 4096
		if (($2 + pages) * 4096 > end) end = ($2 + pages) * 4096
		pages = 0
	}
	END { printf "%.0f %.0f\n", start, end }' /proc/zoneinfo)
# shellcheck disable=SC2034 # for the rows
SLOW_START=$1 SLOW_END=$2

# in_cpuset CPUS NODES: the rest of the script runs there
in_cpuset() {
	put /sys/fs/cgroup/cgroup.subtree_control +cpuset
	mkdir -p /sys/fs/cgroup/bench
	put /sys/fs/cgroup/bench/cpuset.cpus "$1"
	put /sys/fs/cgroup/bench/cpuset.mems "$2"
	put /sys/fs/cgroup/bench/cgroup.procs $$
}

# file_system MB: on the way to it is a block device, so that its pages are page cache
file_system() {
	mke2fs -b 4096 -m 0 /dev/ram0 "$(($1 * 1024))" >/dev/null || fail "no file system could be made on /dev/ram0"
	mkdir -p /mnt/file
	mount -o noatime /dev/ram0 /mnt/file || fail "cannot mount /dev/ram0"
}

measure() {
	{
		echo "kernel_version $(uname -r)"
		echo "cpus $(grep -c ^processor /proc/cpuinfo)"
		echo "slow_node $slow"
		for n in /sys/devices/system/node/node[0-9]*; do
			awk -v n="${n##*/node}" '$3 == "MemTotal:" { printf "node%d_mb %d\n", n, $4 / 1024 }' "$n/meminfo"
		done
	} >out/system
	./work --slow "$slow" --out out/work "$@"
	# What the promoter itself says, for whoever looks into it.
	[ ! -d $P ] || grep . $P/nodes/node*/* >out/pghot 2>/dev/null || true
	[ ! -d $A/0 ] || grep -r . $A/0/contexts/0/schemes >out/damon 2>/dev/null || true
	grep . $SCAN/* >out/scan 2>/dev/null || true
}
