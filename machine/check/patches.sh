#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# patches.sh series|checkpatch: checks the patch series as it is mailed.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"

need_packages git perl python3
mail=$PG_BUILD/series/mail
linux=$PG_BUILD/series/linux

# The mails alone must give what the tests build, and each must apply to what the
# ones before it gave, without fuzz.
check_series() {
	local tree mails count want base index m path bad=0
	rm -f "$PG_CHECK_OUT/series.key"
	current_series
	tree=$("$PG_MACHINE/source.sh" tree)
	want=$(python_overlay 'print(len(overlay.load_series()))')
	mapfile -t mails < <(find "$mail" -name '[0-9]*.patch' ! -name '0000-*' | sort)
	((${#mails[@]} == want)) || fail "${#mails[@]} mails for $want patches"
	[ -s "$mail/0000-cover-letter.patch" ] || fail "there is no cover letter"
	if grep -n '\*\*\* \(SUBJECT\|BLURB\) HERE \*\*\*' "$mail/0000-cover-letter.patch"; then
		fail "the cover letter is empty: write patches/cover-letter.txt"
	fi
	if grep -nE '^(Overlay|Maintainers):' "${mails[@]}"; then
		fail "a line that is for make series only is in a mail"
	fi
	if grep -nE '^(Signed-off-by|Reviewed-by|Acked-by|Tested-by|Co-developed-by):' "${mails[@]}"; then
		fail "the series signs nothing off: whoever submits it does"
	fi

	count=$(git -C "$linux" rev-list --count HEAD)
	((count == want + 1)) || fail "the branch has $count commits, not $((want + 1))"
	base=$(git -C "$linux" rev-list --max-parents=0 HEAD)
	index=$(mktemp "${TMPDIR:-/tmp}/pghot-index.XXXXXX")
	on_exit "rm -f '$index'"
	export GIT_INDEX_FILE=$index
	git -C "$linux" read-tree "$base"
	for m in "${mails[@]}"; do
		git -C "$linux" apply --cached "$m" || fail "${m##*/} does not apply"
	done
	[ "$(git -C "$linux" write-tree)" = "$(git -C "$linux" rev-parse 'HEAD^{tree}')" ] ||
		fail "the mails do not give the branch"
	unset GIT_INDEX_FILE

	# Every file that differs from pristine, and nothing else, is as in the tree
	# that gets tested.
	while read -r path; do
		if ! git -C "$linux" show "HEAD:$path" 2>/dev/null | cmp -s - "$tree/$path"; then
			echo "$path: the series' is not the tested tree's"
			bad=1
		fi
	done < <({ git -C "$linux" diff --name-only "$base" HEAD; new_files; touched_files; } | sort -u)
	((bad == 0)) || fail "the series is not what is tested"
	count=$(git -C "$linux" diff --name-only "$base" HEAD | wc -l)
	echo "${#mails[@]} mails, $count files, as tested"
}

# A message is accepted only where checkpatch.list says so, and no entry of that
# list may have lost its use.
check_style() {
	local tree raw=$PG_CHECK_OUT/checkpatch.raw
	current_series
	tree=$("$PG_MACHINE/source.sh" tree)
	cd "$tree"
	one() {
		# The exit status says only that there are messages.
		perl scripts/checkpatch.pl --strict --terse --show-types --no-summary "$@" || true
	}
	one_mail() {
		local name
		name=$(basename "$1" .patch)
		one --no-signoff --showfile "$1" | sed "s/^/${name%%-*} /"
	}
	export -f one one_mail
	{
		find "$mail" -name '[0-9]*.patch' ! -name '0000-*' -print0 | sort -z |
			xargs -0 -n 1 -P 2 bash -c 'one_mail "$1"' sh
		# Files by themselves: for what a patch does not show.
		new_files | xargs -n 1 -P 2 bash -c 'one -f "$1"' sh
	} >"$raw" 2>&1
	python3 "$PG_MACHINE/check/accept.py" "$PG_MACHINE/check/checkpatch.list" <"$raw"
}

case $1 in
series) check_series ;;
checkpatch) check_style ;;
esac
