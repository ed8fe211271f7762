#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# source.sh: makes sure that a pristine kernel source and this checkout's patched
# copy of it are in the cache, and prints the patched tree's directory.
#
# source.sh pristine	prints the pristine source's directory only
# source.sh work	prints this checkout's work directory, makes nothing
#
# KSRC=/path/to/linux	a person's own tree instead of Debian's linux-source
# REFETCH=1		ask the archive whether it has a newer linux-source

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

KSRC=${KSRC:-}

# Debian suites that may have linux-source-7.3, the steadiest first.
SUITES=(trixie-backports forky-backports forky sid)

howto="Alternatively give a Linux $PG_SERIES source tree that you have: make ... KSRC=/path/to/linux
	(it is copied, never modified)."

# The address of the main Debian archive, as this system's apt has it: not a
# third party's, and not the security archive, which lacks the other suites.
archive_site() {
	local codename
	codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(SITE)|$(RELEASE)|$(LABEL)|$(COMPONENT)' 'Created-By: Packages' |
	awk -F'|' -v codename="$codename" '
		$4 != "main" || $2 ~ /security/ || $1 ~ /security/ { next }
		# LABEL is known once the lists were fetched; before that, the
		# name of the suite has to do.
		$3 == "Debian" || ($3 == "" && ($2 == codename || $2 ~ /^(stable|oldstable|testing|unstable|sid|bookworm|trixie|forky)$/)) { print $1; exit }'
}

# Fetches and unpacks linux-source-7.3 into $PG_CACHE/src-VERSION.
fetch_source() {
	local site suite tmp=$PG_CACHE/tmp.fetch version='' deb opts log=$PG_LOG/fetch.log
	# A temporary directory that is here now is from an interrupted run: we hold the lock.
	rm -rf "$tmp" "$PG_CACHE"/tmp.unpack.*
	need_space "$PG_CACHE" 4000 "the kernel source and one build of it"
	command -v apt-get >/dev/null || die "this is no Debian system, so linux-source-$PG_SERIES cannot be fetched by apt.
	$howto"
	site=$(archive_site) || site=
	[ -n "$site" ] || die "found no Debian archive in the apt configuration of this system.
	$howto"
	mkdir -p "$tmp"/{lists/partial,parts,archives/partial}
	opts=(-o Dir::Etc::SourceList="$tmp/sources.list" -o Dir::Etc::SourceParts="$tmp/parts"
	      -o Dir::State="$tmp" -o Dir::State::Lists="$tmp/lists"
	      -o Dir::State::status=/dev/null -o Dir::Cache="$tmp"
	      -o Acquire::Languages=none -o APT::Architecture=amd64
	      -o Acquire::Retries=3 -o Acquire::http::Timeout=30
	      # Root's cache is closed to the user _apt.
	      -o APT::Sandbox::User=root)
	for suite in "${SUITES[@]}"; do
		printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' \
			"$site" "$suite" >"$tmp/sources.list"
		if ! run_logged "package list of Debian $suite" "$log" "" \
				apt-get "${opts[@]}" -q --error-on=any update; then
			# No network fails for all suites alike; a suite that does
			# not exist (yet) says 404.
			grep -q 404 "$log" && continue
			rm -rf "$tmp"
			die "the package list could not be fetched: is the network (and a proxy, if any) set up?
	$howto"
		fi
		version=$(apt-cache "${opts[@]}" policy "linux-source-$PG_SERIES" | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }')
		[ -z "$version" ] || break
	done
	if [ -z "$version" ]; then
		rm -rf "$tmp"
		die "none of the suites ${SUITES[*]} has linux-source-$PG_SERIES.
	$howto"
	fi
	if [ -d "$PG_CACHE/src-$version" ]; then
		say "linux-source $version is in the cache already"
		rm -rf "$tmp"
		return
	fi
	# apt downloads into the current directory and knows no option for that.
	# shellcheck disable=SC2016
	run_logged "downloading linux-source-$PG_SERIES $version (about 160 MB)" "$log" \
		"du -sm '$tmp' | awk '{ print \$1 \" MB\" }'" \
		sh -c 'cd "$1" && shift && exec "$@"' sh "$tmp" \
		apt-get "${opts[@]}" -q download "linux-source-$PG_SERIES" || {
			rm -rf "$tmp"
			die "the download failed. $howto"
		}
	deb=$(echo "$tmp"/linux-source-*.deb)
	unpack_source "$deb" "$version"
	rm -rf "$tmp"
}

unpack_source() {
	local deb=$1 version=$2 tmp=$PG_CACHE/tmp.unpack.$$
	mkdir -p "$tmp/linux"
	# shellcheck disable=SC2016
	run_logged "unpacking linux-source $version" "$PG_LOG/unpack.log" \
		"du -sm '$tmp' | awk '{ print \$1 \" of about 1700 MB\" }'" \
		bash -c 'set -o pipefail
			dpkg-deb --fsys-tarfile "$1" |
			tar -x -O --wildcards "./usr/src/linux-source-*.tar.xz" |
			xz -dc | tar -x -C "$2" --strip-components=1 --no-same-owner' \
		sh "$deb" "$tmp/linux" || {
			rm -rf "$tmp"
			die "unpacking failed: is the disk full? ($(df -Ph "$PG_CACHE" | awk 'NR == 2 { print $4 }') free)"
		}
	check_release "$tmp/linux"
	mv "$tmp" "$PG_CACHE/src-$version"
}

# release TREE: 7.3.4
kernel_release() {
	awk -F' *= *' '
		$1 == "VERSION" { v = $2 } $1 == "PATCHLEVEL" { p = $2 }
		$1 == "SUBLEVEL" { s = $2 } $1 == "EXTRAVERSION" { e = $2; exit }
		END { print v "." p (s != "" && s != "0" ? "." s : "") e }' "$1/Makefile"
}

check_release() {
	local r
	if [ ! -f "$1/Makefile" ] || [ ! -f "$1/mm/memory-tiers.c" ]; then
		die "$1 is no Linux source tree"
	fi
	r=$(kernel_release "$1")
	case $r in
	"$PG_SERIES" | "$PG_SERIES".* | "$PG_SERIES"-*) ;;
	*) warn "the source in $1 is Linux $r; the patches are made for $PG_SERIES.x and may not apply" ;;
	esac
}

# A person's own tree: a copy without build products, refreshed each time.
copy_ksrc() {
	local dst=$1 list
	[ -d "$KSRC" ] || die "KSRC=$KSRC is not a directory"
	check_release "$KSRC"
	need_space "$PG_CACHE" 4000 "a copy of $KSRC and one build of it"
	mkdir -p "$dst/linux"
	list=$PG_CACHE/tmp.list.$$
	on_exit "rm -f '$list'"
	# What git knows, where there is git; else all but what builds leave.
	if git -C "$KSRC" rev-parse --show-toplevel 2>/dev/null | grep -qx "$KSRC"; then
		(cd "$KSRC" && git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do
			[ ! -e "$f" ] && [ ! -L "$f" ] || printf '%s\0' "$f"
		done) >"$list"
		run_logged "copying $KSRC" "$PG_LOG/copy.log" "" \
			rsync -a --copy-unsafe-links --from0 --files-from="$list" "$KSRC/" "$dst/linux/" ||
			die "copying $KSRC failed"
		# --files-from cannot delete what is gone.
		(cd "$dst/linux" && find . ! -type d -printf '%P\0') | sort -z >"$list.have"
		sort -z -o "$list" "$list"
		comm -z -23 "$list.have" "$list" | (cd "$dst/linux" && xargs -0r rm -f --)
		rm -f "$list.have"
	else
		run_logged "copying $KSRC" "$PG_LOG/copy.log" "" \
			rsync -a --copy-unsafe-links --delete --exclude=/.git --exclude='*.o' --exclude='*.cmd' --exclude='*.ko' \
				--exclude='*.mod' --exclude='*.mod.c' --exclude='*.a' --exclude=/.config \
				--exclude=/vmlinux --exclude=/include/generated --exclude=/include/config \
				--exclude=/arch/*/include/generated --exclude='/.build-*' "$KSRC/" "$dst/linux/" ||
			die "copying $KSRC failed"
	fi
}

# Prints the pristine source's directory (which has the tree in linux/).
pristine() {
	local newest
	if [ -n "$KSRC" ]; then
		KSRC=$(cd "$KSRC" 2>/dev/null && pwd -P) || die "KSRC: no such directory"
		newest=$PG_CACHE/ksrc-$(short_hash "$KSRC")
		copy_ksrc "$newest"
	else
		newest=$(find_newest)
		if [ -z "$newest" ] || [ -n "${REFETCH:-}" ]; then
			fetch_source
			newest=$(find_newest)
		fi
	fi
	printf '%s\n' "$newest"
}

find_newest() {
	find "$PG_CACHE" -maxdepth 1 -name 'src-*' 2>/dev/null | sort -V | tail -n 1
}

# The directory of this checkout (and this source): the patched tree in tree/,
# and in it the build directories .build-VARIANT.
work_dir() {
	local k=
	[ -z "$KSRC" ] || k=$(cd "$KSRC" 2>/dev/null && pwd -P) || die "KSRC=$KSRC: no such directory"
	printf '%s\n' "$PG_CACHE/work-$(short_hash "$PG_TOP:$k")"
}

patched_tree() {
	local src work tmp
	work=$(work_dir)
	src=$(pristine)
	mkdir -p "$work"
	printf '%s\n' "$PG_TOP" >"$work/checkout"
	if [ "$(cat "$work/pristine" 2>/dev/null)" != "$src" ] || [ ! -d "$work/tree" ]; then
		tmp=$work/tmp.tree
		rm -rf "$tmp" "$work/tree" "$work/state.json"
		# Hard links: seconds, and no space. Whatever writes into the
		# patched tree replaces files, it never writes into them.
		run_logged "laying out the tree" "$PG_LOG/tree.log" "" cp -al "$src/linux" "$tmp" ||
			die "could not lay out $work/tree"
		mv "$tmp" "$work/tree"
		printf '%s\n' "$src" >"$work/pristine"
	fi
	# The source of a package never changes; a person's own tree does.
	python3 "$PG_MACHINE/tree.py" sync --pristine "$src/linux" --tree "$work/tree" \
		--state "$work/state.json" ${KSRC:+--rescan} >&2 || exit 1
	printf '%s\n' "$work/tree"
}

main() {
	case ${1:-tree} in
	tree) patched_tree ;;
	pristine) pristine ;;
	work) work_dir ;;
	*) die "usage: source.sh [tree|pristine|work]" ;;
	esac
}

# Locked by the caller (build.sh) or here; see with_lock.
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	need_packages "${PG_PKG_SOURCE[@]}"
	case ${1:-tree} in
	work) main "$@" ;;
	*) with_lock source main "$@" ;;
	esac
fi
