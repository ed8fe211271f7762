#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ibs.sh [PROCESSOR...]: the selftest "hwhints" on modelled processors that sample
# accesses, each in a guest of its own, and on some that only seem to.
#
# For each one: which unit the kernel must use, what its log must say, and what of the
# test must not skip.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"

# Name, CPU, unit, and what the log says (extended regular expression, or -).
processors=(
	'zen6    family=26,model=80,ibs-preset=zen6                      ibs_memprof  Memory.Profiler.samples.accesses'
	'zen5    family=26,model=2,ibs-preset=zen5                       ibs_op       -'
	'zen4    family=25,model=17,ibs-preset=zen4                      ibs_op       -'
	'zen3    family=25,model=1,ibs-preset=zen3                       ibs_op       -'
	'taken   family=26,model=80,ibs-preset=zen6,ibs-lvt-memprof=1    ibs_op       somebody.else.uses.the.LVT.offset'
	'none    family=26,model=2                                       not.present  -'
)

variant=${VARIANT:-small}
out=$PG_CHECK_OUT/${PG_CHECK_NAME:-ibs}
tests=tools/testing/selftests/mm/pghot
tree=$("$PG_MACHINE/source.sh" tree)
kernel=$("$PG_MACHINE/build.sh" "$variant")
mkdir -p "$out"
gcc -O2 -Wall -pthread -D_GNU_SOURCE -I "$tree/tools/testing/selftests" -I "$tree/tools/include" \
	-o "$out/hwhints" "$tree/$tests"/{hwhints,pghot_util,pghot_main}.c

passed=0 failed=0 skipped=0
# result BAD NAME
result() {
	if [ -n "$1" ]; then
		failed=$((failed + 1))
		echo "not ok $2: $1"
	else
		passed=$((passed + 1))
		echo "ok $2"
	fi
}

# What must run on a processor: "absent", or all the others.
must_run() {
	if [ "$2" = not.present ]; then
		[ "$1" = absent ]
	else
		[ "$1" != absent ]
	fi
}

for line in "${processors[@]}"; do
	read -r name cpu unit log <<<"$line"
	if (($#)) && [[ " $* " != *" $name "* ]]; then
		continue
	fi
	dir=$out/$name
	rm -rf "$dir"
	mkdir -p "$dir"
	rc=0
	# shellcheck disable=SC2016
	MACHINE=${MACHINE:-fast} CPU="EPYC-Milan,$cpu" \
		"$PG_MACHINE/guest.sh" --variant "$variant" --kernel "$kernel" --out "$dir" \
		--files "$out/hwhints" --timeout 1800 -- '
		echo "unit $(cat /sys/kernel/mm/pghot/sources/hwhints/unit)"
		PGHOT_LIMIT_S=120 ./hwhints
		grep IBM /proc/interrupts | sed "s/^/# /"
		grep -E "hwhint|pghot_reported" /proc/vmstat | sed "s/^/# /"
		for f in interrupt_us drain_us look_us gave_way paused; do
			echo "# $f $(cat /sys/kernel/mm/pghot/sources/hwhints/$f)"
		done' | tee "$dir/log" || rc=$?

	grep -qxE "unit $unit" "$dir/log" && bad='' || bad="the unit is not $unit"
	result "$bad" "$name: unit"
	if [ "$log" != - ]; then
		grep -qE "$log" "$dir/console.log" && bad='' || bad="the log does not say so"
		result "$bad" "$name: log"
	fi
	grep -nE 'BUG: |WARNING: |Oops: |unchecked MSR|KASAN: |possible circular|suspicious RCU' "$dir/console.log" |
		tr -d '\r' >"$dir/complaints" || true
	[ -s "$dir/complaints" ] && bad="the kernel complains: $(head -n 1 "$dir/complaints")" || bad=''
	result "$bad" "$name: no complaint"
	while read -r text; do
		test=$(sed -E 's/^(not )?ok [0-9]+ //; s/ #.*//; s/.*\.//' <<<"$text")
		case $text in
		*'# SKIP'*)
			skipped=$((skipped + 1))
			# Needs that this guest does not have are no failure.
			if must_run "$test" "$unit" && ! grep -qE 'CONFIG_|does not sleep|can be offlined' <<<"$text"; then
				result "skipped" "$name: $test"
			fi ;;
		ok*) result '' "$name: $test" ;;
		*) result "failed" "$name: $test" ;;
		esac
	done < <(grep -E '^(not )?ok ' "$dir/log")
	((rc == 0)) || result "the guest ended with status $rc" "$name"
	grep -q '^1\.\.' "$dir/log" || result "the test did not run" "$name"
done
echo "$passed $failed $skipped" >"$PG_CHECK_CASES"
echo "$passed passed, $failed failed, $skipped skipped"
((passed && !failed))
