#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What perf.sh does in the guest: perf's own tests, and recordings of walks over
# memory on each node. perf.py judges what it leaves in /root/out.

out=/root/out
mkdir -p $out /tmp/data
cd /root || exit 1
export PERF_CONFIG=/dev/null HOME=/root

# A slow machine under emulation is no reason to sample less.
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
echo -1 >/proc/sys/kernel/perf_event_paranoid
echo 0 >/proc/sys/kernel/kptr_restrict

fields=comm,cpu,ip,addr,phys_addr,data_src,weight

# record NAME NODE CPU OPTIONS...
record() {
	name=$1 node=$2 cpu=$3
	shift 3
	./perf record -q -N -B --sample-cpu -o "/tmp/data/$name" "$@" -- ./walk "$node" 16 "${MILLIONS:-2}" "$cpu" \
		>"$out/$name.walk" 2>"$out/$name.err"
	echo "$?" >"$out/$name.status"
	./perf script -i "/tmp/data/$name" -F $fields >"$out/$name.script" 2>>"$out/$name.err"
}

./perf --version >$out/version
ls /sys/bus/event_source/devices/ibs_op/caps /sys/bus/event_source/devices/ibs_op/format >$out/ibs_op
for n in 0 1 2; do
	grep -E 'MemTotal' /sys/devices/system/node/node$n/meminfo
done >$out/nodes
dmesg | grep -E 'SRAT: Node|IBS|LVT offset|PMU' >$out/dmesg

for n in 0 1 2; do
	record l3-$n $n 0 -e ibs_op/l3missonly=1/ -c 20000 --phys-data -d -W
done
record far-2 2 1 -e ibs_op/l3missonly=1,cnt_ctl=1/ -c 1008 --phys-data -d -W
record ops-2 2 0 -e ibs_op/cnt_ctl=1/ -c 5008 --phys-data -d -W
record user-2 2 0 -e ibs_op/cnt_ctl=1/u -c 5008 --phys-data -d -W
record kernel-2 2 0 -e ibs_op/cnt_ctl=1/k -c 5008 --phys-data -d -W
record ldlat-0 0 0 -e ibs_op/ldlat=128/ -c 20000 --phys-data -d -W
record ldlat-2 2 0 -e ibs_op/ldlat=128/ -c 20000 --phys-data -d -W
record precise-2 2 0 -e cycles:pp -c 50000

for n in 0 1 2; do
	./perf mem record -c 20000 --sample-cpu -o /tmp/data/mem-$n -- ./walk $n 16 "${MILLIONS:-2}" 0 >$out/mem-$n.walk 2>$out/mem-$n.err
	echo "$?" >$out/mem-$n.status
	./perf mem report -i /tmp/data/mem-$n --stdio --sort=mem >$out/mem-$n.report 2>>$out/mem-$n.err
	./perf script -i /tmp/data/mem-$n -F comm,cpu,ip,addr,data_src,weight >$out/mem-$n.script 2>>$out/mem-$n.err
done

# A processor that was away has its units back.
echo 0 >/sys/devices/system/cpu/cpu1/online
sleep 1
echo 1 >/sys/devices/system/cpu/cpu1/online
record online-2 2 1 -e ibs_op/l3missonly=1/ -c 20000 --phys-data -d -W

./perf test list 2>&1 | grep -i ibs >$out/test.list
sed -n 's/^ *\([0-9]*\): *\(AMD IBS.*\)$/\1 \2/p' $out/test.list | while read -r number rest; do
	echo "== $rest"
	timeout "${TEST_SECONDS:-300}" ./perf test -v "$number" 2>&1
	echo "status $?"
done >$out/test.log
dmesg | grep -E 'WARNING:|BUG:|Oops|Uhhuh|Dazed|unknown NMI|NMI received' >$out/complaints
exit 0
