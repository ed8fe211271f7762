#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make run: PGHOT_CMD (what CMD was in "make run CMD=...") and OUT from the
# environment; guest.sh knows the other variables.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cmd=${PGHOT_CMD:-${CMD:-}}
[ -n "$cmd" ] || die "make run needs a command: make run CMD='uname -a' [FILES='prog data']"
exec "$PG_MACHINE/guest.sh" ${OUT:+--out "$OUT"} -- "$cmd"
