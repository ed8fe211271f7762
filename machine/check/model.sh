#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# model.sh ibs|perf|memory: does the modelled machine do what machine/qemu/README.md
# says? Each test case counts.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"

log=$PG_CHECK_OUT/${PG_CHECK_NAME:-model}.tap
rc=0
case ${1:-} in
ibs) "$PG_MACHINE/tests/ibs.sh" --statistics | tee "$log" || rc=$? ;;
perf) "$PG_MACHINE/tests/perf.sh" zen6 zen4 | tee "$log" || rc=$? ;;
memory) "$PG_MACHINE/tests/memory.py" | tee "$log" || rc=$? ;;
*) fail "usage: model.sh ibs|perf|memory" ;;
esac
awk '/^ok .*# SKIP/ { s++; next } /^ok / { p++ } /^not ok / { f++ }
	END { print p + 0, f + 0, s + 0 }' "$log" >"$PG_CHECK_CASES"
exit "$rc"
