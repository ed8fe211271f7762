#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The demo's part in the guest: hotset under pghot and under NUMA balancing's
# memory tiering, a fresh process each time, same pages. Files go to /root/out:
# those of hotset, named pghot-N.* and balancing-N.*, and "pghot" and "system" with
# "name value" lines.
#
# PAIRS		how often each
# SECONDS_LONG	how long the first run under pghot lasts; the others end soon after
#		95 % of the hot pages arrived, or then

set -eu
P=/sys/kernel/mm/pghot
out=/root/out
PAIRS=${PAIRS:-3}
SECONDS_LONG=${SECONDS_LONG:-20}

fail() { echo "demo: $*"; exit 1; }

[ -d $P ] || fail "this kernel has no pghot"
status=$(cat $P/status)
[ "$status" != "no lower tier" ] || fail "pghot sees no lower-tier node: nothing can be promoted"
for node in "$P"/nodes/node*; do :; done
slow=${node##*/node}

balancing() { echo "$1" >/proc/sys/kernel/numa_balancing; }
sources() { echo "$1" >$P/enabled_sources; }
counter() { awk -v name="$1" '$1 == name { print $2 }' /proc/vmstat; }

{
	echo "kernel_version $(uname -r)"
	echo "cpus $(grep -c ^processor /proc/cpuinfo)"
	echo "slow_node $slow"
	for n in /sys/devices/system/node/node[0-9]*; do
		awk -v n="${n##*/node}" '$3 == "MemTotal:" { printf "node%d_mb %d\n", n, $4 / 1024 }' "$n/meminfo"
	done
} >$out/system

# pghot N ARGUMENTS-OF-HOTSET...
pghot() {
	n=$1; shift
	echo 1 >$P/freq_threshold
	off=$(cat $P/bytes_in_use)
	visited=$(cat "$node/visited")
	promoted=$(cat "$node/promoted")
	recorded=$(counter pghot_recorded_accesses)
	reported=$(counter pghot_reported_hintfaults)
	./hotset --node "$slow" --out "$out/pghot-$n" --label "pghot, run $n:         " \
		--on $P/enabled_sources=hintfaults "$@"
	{
		echo "bytes_in_use_off $off"
		echo "bytes_in_use $(cat $P/bytes_in_use)"
		echo "records $(cat "$node/records")"
		echo "visited $(($(cat "$node/visited") - visited))"
		echo "promoted $(($(cat "$node/promoted") - promoted))"
		echo "recorded_accesses $(($(counter pghot_recorded_accesses) - recorded))"
		echo "reported_hintfaults $(($(counter pghot_reported_hintfaults) - reported))"
	} >"$out/pghot-$n.core"
	sources 0
}

# numa N ARGUMENTS-OF-HOTSET...: the fault path promotes, pghot is off
numa() {
	n=$1; shift
	./hotset --node "$slow" --out "$out/balancing-$n" --label "NUMA balancing, run $n:" \
		--on /proc/sys/kernel/numa_balancing=2 "$@"
	balancing 0
}

balancing 0
sources 0
# In turns, so that neither gains from always being first.
i=1
while [ $i -le "$PAIRS" ]; do
	if [ $i = 1 ]; then
		pghot $i --seconds "$SECONDS_LONG"
		numa $i --seconds "$SECONDS_LONG" --until 95
	elif [ $((i % 2)) = 0 ]; then
		numa $i --seconds "$SECONDS_LONG" --until 95
		pghot $i --seconds "$SECONDS_LONG" --until 95
	else
		pghot $i --seconds "$SECONDS_LONG" --until 95
		numa $i --seconds "$SECONDS_LONG" --until 95
	fi
	i=$((i + 1))
done
echo "bytes_in_use_after $(cat $P/bytes_in_use)" >>$out/system
