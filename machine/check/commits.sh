#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# commits.sh build|same-code
#
# build: each commit of the series compiles, so that nobody who bisects the kernel
# gets stuck in it. The first is compiled in all of mm and kernel/sched (the last is
# what all other checks build); each one in the files that the series touches, and
# in the new code as soon as it is there, also before a later commit makes its
# option visible. With PG_CHECK_FULL: the whole kernel at each commit.
#
# same-code: without CONFIG_PGHOT the objects hold the instructions and data of the
# pristine kernel's.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"

need_packages "${PG_PKG_BUILD[@]}" git
linux=$PG_BUILD/series/linux
work=$("$PG_MACHINE/source.sh" work)
# The tree of one commit after the other, and its build directory. Standing where
# all build directories stand (one below the tree), it shares the compiler's cache.
tree=$work/commits
dir=$tree/.build-check
pristine_objects=$work/pristine-objects

index() { GIT_INDEX_FILE=$work/commits.index git --git-dir="$linux/.git" --work-tree="$tree" "$@"; }

# The tree as a set of links to the pristine files. git replaces files, it does not
# write into them.
prepare_tree() {
	local src base
	src=$("$PG_MACHINE/source.sh" pristine)/linux
	base=$(git -C "$linux" rev-list --max-parents=0 HEAD)
	if [ "$(cat "$work/commits.base" 2>/dev/null)" != "$base" ] || [ ! -d "$tree" ]; then
		rm -rf "$tree" "$work/commits.base" "$work/commits.index" "$pristine_objects"
		cp -al "$src" "$tree"
		index read-tree "$base"
		index update-index -q --refresh
		printf '%s\n' "$base" >"$work/commits.base"
	fi
}

# checkout COMMIT: writes only what differs.
checkout() {
	index read-tree --reset -u "$1"
}

# targets whole|parts: what to compile in the tree as it is now.
targets() {
	local f
	[ "$1" = parts ] || printf '%s\n' mm/ kernel/sched/
	{
		touched_files | sed -n 's/\.c$/.o/p'
		new_files | sed -n 's,/[^/]*\.c$,/,p'
	} | sort -u | while read -r f; do
		case $f in
		tools/*) continue ;;
		mm/* | kernel/sched/*) [ "$1" = parts ] || continue ;;
		esac
		case $f in
		*/tests/) ;;
		# Only if the directory above knows of it.
		*/) ! grep -qs "+= ${f#"${f%/*/}/"}" "$tree/${f%/*/}/Makefile" || printf '%s\n' "$f" ;;
		*) [ ! -f "$tree/${f%.o}.c" ] || in_configuration "$tree" "$dir" <<<"$f" ;;
		esac
	done
}

compile() {
	local what=$1 raw=$PG_CHECK_OUT/commits-$1.raw
	shift
	echo "compiling $what"
	without_warnings "$raw" "$dir" kernel_make "$tree" "$dir" "$@" ||
		fail "$what does not compile cleanly (the tree: $tree)"
}

# Everything that is compiled at the pristine commit is kept for same-code.
build_pristine() {
	local base=$1 key list
	key=$({ cat "$PG_MACHINE/config/small.config"; gcc --version; } | sha256sum)
	[ "$(cat "$pristine_objects/key" 2>/dev/null)" != "$key" ] || return 0
	checkout "$base"
	small
	mapfile -t list < <(targets whole)
	compile pristine prepare "${list[@]}"
	rm -rf "$pristine_objects"
	mkdir -p "$pristine_objects"
	(cd "$dir" && find mm kernel/sched -name '*.o' -exec cp --parents {} "$pristine_objects" \;)
	printf '%s\n' "$key" >"$pristine_objects/key"
}

build_commits() {
	local base commits c n=0 name list
	base=$(git -C "$linux" rev-list --max-parents=0 HEAD)
	mapfile -t commits < <(git -C "$linux" rev-list --reverse "$base..HEAD")
	build_pristine "$base"
	for c in "${commits[@]}"; do
		n=$((n + 1))
		name=$n-$(git -C "$linux" show -s --format=%f "$c" | cut -c1-40)
		checkout "$c"
		small
		mapfile -t list < <(targets "$( ((n == 1)) && echo whole || echo parts)")
		if [ -n "$PG_CHECK_FULL" ]; then
			list=(bzImage)
		fi
		compile "$name" prepare "${list[@]}"
		# Code that no one can select yet: make it visible for once.
		if [ -f "$tree/mm/pghot/Kconfig" ] && ! grep -q 'mm/pghot/Kconfig' "$tree/mm/Kconfig"; then
			replace "$tree/mm/Kconfig" '$a source "mm/pghot/Kconfig"'
			replace "$tree/mm/Makefile" '$a obj-$(CONFIG_PGHOT) += pghot/'
			small
			grep -q '^CONFIG_PGHOT=y' "$dir/.config" || fail "$name: PGHOT cannot be selected"
			compile "$name-visible" prepare mm/pghot/
		fi
	done
	echo "$n commits"
}

# replace FILE SED-COMMAND: a new file; the old one may be a link to the pristine one.
replace() {
	sed -e "$2" "$1" >"$1.new"
	mv "$1.new" "$1"
}

# The configuration "small", or as much of it as this commit has.
small() {
	local log=$PG_CHECK_OUT/commits-config.raw before=$dir/.config.before
	mkdir -p "$dir"
	: >"$log"
	cp "$dir/.config" "$before" 2>/dev/null || rm -f "$before"
	{
		kernel_make "$tree" "$dir" tinyconfig
		merge_config "$tree" "$dir" "$PG_MACHINE/config/small.config"
	} >"$log" 2>&1 || { tail -n 20 "$log"; fail "the configuration fails"; }
	# With its old time, if nothing changed.
	if cmp -s "$before" "$dir/.config"; then
		mv "$before" "$dir/.config"
	fi
}

same_code() {
	local off
	need_packages binutils
	build_pristine "$(git -C "$linux" rev-list --max-parents=0 HEAD)"
	off=$("$PG_MACHINE/build.sh" off prepare mm/ kernel/sched/)
	mapfile -t objects < <(cd "$pristine_objects" && find mm kernel/sched -name '*.o' ! -name 'built-in*' | sort)
	((${#objects[@]} > 50)) || fail "only ${#objects[@]} objects to compare"
	python3 "$PG_MACHINE/check/same_code.py" "$pristine_objects" "$off" "${objects[@]}"
}

current_series
prepare_tree
case $1 in
build) build_commits ;;
same-code) same_code ;;
esac
