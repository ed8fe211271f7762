#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# kernel.sh VARIANT: the kernel builds, and the files of the series do without a
# warning. What the kernel's own files have to say under an odd configuration is
# only shown.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"

log=$PG_LOG/build-$1.log
dir=$("$PG_MACHINE/build.sh" "$1")
[ -f "$dir/arch/x86/boot/bzImage" ] || fail "there is no bzImage in $dir"
if [ -n "$(warnings_in "$log")" ]; then
	warnings_in "$log"
	# Or the next build would have nothing to say.
	rm -f "$dir/.pghot-stamp"
	{ new_files; touched_files; } | sed -n 's/\.c$/.o/p' | (cd "$dir" && xargs rm -f)
	fail "warnings"
fi
