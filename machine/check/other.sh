#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# other.sh docs|demo|deb|deb-boot: checks that scripts of their own do.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"

case $1 in
docs)
	"$PG_MACHINE/docs-check.sh"
	;;
demo)
	rm -f "$PG_BUILD/demo/result.json"
	"$PG_MACHINE/demo.sh"
	python3 "$PG_MACHINE/check/demo_result.py" "$PG_BUILD/demo"
	;;
deb)
	CONFIG=small "$PG_MACHINE/deb.sh"
	;;
deb-boot)
	compgen -G "$PG_BUILD/deb/linux-image-*.deb" >/dev/null || CONFIG=small "$PG_MACHINE/deb.sh"
	"$PG_MACHINE/deb-boot-test.sh"
	;;
esac
