#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make series: turns patches/ and the overlay into build/series/linux (a git
# repository with the branch "pghot" on a pristine import of the kernel) and
# build/series/mail (mails with a cover letter).

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$PG_MACHINE/source.sh"

# The pristine source as a bare git repository with one commit. Made once, with
# fixed dates and names, so that its commit has the same hash everywhere.
import() {
	local src=$1 git=$2 release tmp=$2.tmp
	rm -rf "$tmp"
	need_space "$PG_CACHE" 1000 "a git repository of the kernel source"
	release=$(kernel_release "$src")
	git init -q --bare "$tmp"
	# Speed counts here, not size.
	git -C "$tmp" config core.compression 1
	git -C "$tmp" config gc.auto 0
	git -C "$tmp" config core.autocrlf false
	# The kernel's own .gitignore and attributes must not leave out anything.
	echo '* -text -ident -filter' >"$tmp/info/attributes"
	# shellcheck disable=SC2016
	run_logged "importing Linux $release into git" "$PG_LOG/import.log" \
		"find '$tmp/objects' -type f | wc -l | sed 's/\$/ of about 90000 files/'" \
		bash -ec 'export GIT_DIR=$1 GIT_WORK_TREE=$2
			cd "$2"
			git add -A -f .
			export GIT_AUTHOR_NAME=linux GIT_AUTHOR_EMAIL=linux@localhost GIT_AUTHOR_DATE="2026-01-01T00:00:00Z"
			export GIT_COMMITTER_NAME=linux GIT_COMMITTER_EMAIL=linux@localhost GIT_COMMITTER_DATE="2026-01-01T00:00:00Z"
			git -c commit.gpgSign=false commit -q --no-verify -m "Linux $3"
			git tag "v$3"
			git repack -a -d -q --window=0 --threads=0' sh "$tmp" "$src" "$release" || {
		rm -rf "$tmp"
		die "importing the kernel source into git failed, see $PG_LOG/import.log"
	}
	mv "$tmp" "$git"
}

# Makes sure that the source and its git import are there, and sets src and git.
prepare() {
	src=$(pristine)
	git=$src/git
	# A person's own tree is not what it was last time: import it anew when
	# anything in it changed.
	if [ -n "$KSRC" ]; then
		if [ ! -d "$git" ] || [ -n "$(find "$src/linux" -cnewer "$git/pghot-done" -print -quit 2>/dev/null)" ]; then
			rm -rf "$git"
		fi
	fi
	if [ ! -d "$git" ]; then
		import "$src/linux" "$git"
		: >"$git/pghot-done"
	fi
}

make_series() {
	python3 "$PG_MACHINE/series.py" --pristine "$src/linux" --git "$git" --out "$PG_BUILD/series" \
		--release "$(kernel_release "$src/linux")" "$@"
}

need_packages "${PG_PKG_SERIES[@]}"
src='' git=''
with_lock source prepare
with_lock "series-$(short_hash "$PG_BUILD")" make_series "$@"
