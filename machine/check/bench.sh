#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# bench.sh: make bench works: a small scenario gives a complete result, what was run is
# not run again, and one row that fails does not take the others with it.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"

# The kernel that the other checks build as well.
export VARIANT=small
unset SCENARIO ROWS QUICK
bench=$PG_MACHINE/bench.sh
tmp=$(mktemp -d "${TMPDIR:-/tmp}/pghot-bench.XXXXXX")
on_exit "rm -rf '$tmp'"

# refused PATTERN VARIABLE=VALUE...
refused() {
	local pattern=$1 rc=0
	shift
	env "$@" "$bench" >"$tmp/out" 2>&1 || rc=$?
	((rc)) || fail "$* was accepted"
	grep -qE "$pattern" "$tmp/out" || { cat "$tmp/out"; fail "$*: the message does not match '$pattern'"; }
	echo "ok: $* is refused"
}
refused "no scenario 'none'.* t1" SCENARIO=none
refused "no row 'none'.* HF" ROWS=B0,none
refused 'no scenario' SCENARIO=../rows/B0
refused 'ROWS names no row' ROWS=,
refused "no row file '/none/N2'" ROWS=/none/N2
refused 'two rows of the same name' ROWS=N2,"$PG_MACHINE/bench/rows/N2"

row=$tmp/FAILS
broken() {
	printf '%b' "$2" >"$row"
	refused "$1" SCENARIO=smoke "ROWS=$row"
}
broken "there is no keyword 'nmae'" 'nmae x\n'
broken "'name \.\.\.' is missing" 'set /proc/x 1\n'
broken "there is no 'nothing'" 'name x\nset /proc/x {nothing}\n'
broken 'not arithmetic' 'name x\nset /proc/x {"a"}\n'

rm -rf "$PG_BUILD/bench/smoke"
printf 'name\tfails\nset\t/proc/sys/kernel/numa_balancing 77\n' >"$row"
rc=0
SCENARIO=smoke ROWS=IDEAL,B0,$row,HF "$bench" >"$tmp/table" 2>"$tmp/log" || rc=$?
cat "$tmp/log" "$tmp/table"
((rc)) || fail "a row that failed does not show in the exit status"
grep -q "does not take '77'" "$tmp/log" || fail "it is not said why the row failed"
python3 "$PG_MACHINE/check/bench_result.py" "$PG_BUILD/bench" IDEAL B0 HF
echo "ok: a row fails, the others are complete"

SCENARIO=smoke ROWS=IDEAL,B0,HF "$bench" >"$tmp/again" 2>"$tmp/log" || { cat "$tmp/log"; fail "the rows that were finished do not count"; }
grep -q 'nothing changed since they were run: IDEAL B0 HF' "$tmp/log" || { cat "$tmp/log"; fail "rows are run again although nothing changed"; }
! grep -q 'at a time' "$tmp/log" || fail "something is run again"
echo "ok: finished rows are kept"
