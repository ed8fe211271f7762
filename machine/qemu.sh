#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# qemu.sh: builds the QEMU of the modelled machine (Debian 12's QEMU 7.2 with the
# patches in machine/qemu) and prints the path of its binary. Built once for each
# state of the patches; see machine/qemu/README.md.
#
# qemu.sh source	lays out the source in build/qemu-source, as a git repository with a
#			commit for each patch, and prints its directory
# qemu.sh export	makes the patches of machine/qemu anew from that repository
#
# QEMU_SRC=/path/to/qemu	build this patched tree of your own, in QEMU_SRC/build-pghot

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$PG_MACHINE/source.sh"

suite=bookworm
patches=$PG_MACHINE/qemu
packages=(build-essential ca-certificates ccache dpkg-dev libattr1-dev libcap-ng-dev libglib2.0-dev
	libpixman-1-dev meson ninja-build patch pkg-config python3 qemu-system-data seabios zlib1g-dev)
configure=(--target-list=x86_64-softmmu --without-default-features --enable-tcg --enable-system
	--enable-virtfs --enable-attr --enable-cap-ng --disable-docs
	# Debian's packages bring the firmware.
	--firmwarepath=/usr/share/qemu:/usr/share/seabios:/usr/lib/ipxe/qemu)

howto="Without it there is no modelled machine; MACHINE=stock works with Debian's own QEMU."

# Fetches the source package into $PG_CACHE/qemu-src-VERSION.
fetch() {
	local site tmp=$PG_CACHE/tmp.qemu-fetch opts version log=$PG_LOG/qemu-fetch.log
	rm -rf "$tmp"
	site=$(archive_site) || site=
	[ -n "$site" ] || die "found no Debian archive in the apt configuration of this system. $howto"
	mkdir -p "$tmp"/{lists/partial,parts,archives/partial,src}
	printf 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' \
		"$site" "$suite" >"$tmp/sources.list"
	opts=(-o Dir::Etc::SourceList="$tmp/sources.list" -o Dir::Etc::SourceParts="$tmp/parts"
	      -o Dir::State="$tmp" -o Dir::State::Lists="$tmp/lists"
	      -o Dir::State::status=/dev/null -o Dir::Cache="$tmp"
	      -o Acquire::Languages=none -o APT::Architecture=amd64
	      -o Acquire::Retries=3 -o Acquire::http::Timeout=30 -o APT::Sandbox::User=root)
	run_logged "source list of Debian $suite" "$log" "" apt-get "${opts[@]}" -q --error-on=any update || {
		rm -rf "$tmp"
		die "the source list could not be fetched: is the network (and a proxy, if any) set up? $howto"
	}
	# apt downloads into the current directory and knows no option for that.
	# shellcheck disable=SC2016
	run_logged "downloading the source of qemu (24 MB)" "$log" "du -sm '$tmp/src' | awk '{ print \$1 \" MB\" }'" \
		sh -c 'cd "$1" && shift && exec "$@"' sh "$tmp/src" \
		apt-get "${opts[@]}" -q --download-only source qemu || {
			rm -rf "$tmp"
			die "the download failed. $howto"
		}
	version=$(sed -n 's/^Version: *//p' "$tmp"/src/*.dsc | tail -n 1)
	[[ $version == *7.2+dfsg* ]] || {
		rm -rf "$tmp"
		die "the archive's $suite has qemu ${version:-of no version}, but the patches are made for 7.2. $howto"
	}
	mv "$tmp/src" "$PG_CACHE/qemu-src-${version#*:}"
	rm -rf "$tmp"
}

# source_package: prints the directory that has it.
source_package() {
	local dir
	dir=$(find "$PG_CACHE" -maxdepth 1 -name 'qemu-src-*' 2>/dev/null | sort -V | tail -n 1)
	if [ -z "$dir" ]; then
		fetch
		dir=$(find "$PG_CACHE" -maxdepth 1 -name 'qemu-src-*' | sort -V | tail -n 1)
	fi
	printf '%s\n' "$dir"
}

# lay_out PACKAGE-DIR TREE: unpacks and patches.
lay_out() {
	local p
	dpkg-source --no-check --require-strong-checksums -x "$1"/*.dsc "$2" || return 1
	while read -r p; do
		echo "patch $p"
		patch -d "$2" -p1 --no-backup-if-mismatch -s -N -F0 <"$patches/$p" || {
			echo "machine/qemu/$p does not apply to the source in $1"
			return 1
		}
	done < <(grep -v '^ *\(#\|$\)' "$patches/series")
}

# lay_out_git PACKAGE-DIR TREE
lay_out_git() {
	local p git=(git -C "$2" -c user.name=pghot -c user.email=pghot@localhost -c commit.gpgsign=false)
	dpkg-source --no-check --require-strong-checksums -x "$1"/*.dsc "$2" || return 1
	rm -rf "$2/.pc" "$2/debian"
	git init -q "$2" || return 1
	"${git[@]}" add -Af . || return 1
	"${git[@]}" commit -q -m "$(basename "$1")" || return 1
	"${git[@]}" tag base || return 1
	while read -r p; do
		"${git[@]}" am -q --no-3way "$patches/$p" || return 1
	done < <(grep -v '^ *\(#\|$\)' "$patches/series")
}

# compile TREE DIR
compile() {
	local cc=gcc
	! command -v ccache >/dev/null || cc="ccache gcc"
	mkdir -p "$2"
	cd "$2"
	[ -f build.ninja ] || "$1/configure" "${configure[@]}" --cc="$cc" --meson=/usr/bin/meson
	ninja -j"$PG_JOBS" qemu-system-x86_64
}

use_ccache() {
	export CCACHE_DIR=${CCACHE_DIR:-$PG_CACHE/ccache}
	export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-5G}
	export CCACHE_BASEDIR=$1 CCACHE_NOHASHDIR=1 CCACHE_COMPILERCHECK=content
}

progress() { printf "tail -n 1 '%s' | grep -o '^\\[[0-9/]*\\]'" "$1"; }

build() {
	local dir=$1 tmp=$PG_CACHE/tmp.qemu package log=$PG_LOG/qemu.log
	[ ! -x "$dir/qemu-system-x86_64" ] || return 0
	need_space "$PG_CACHE" 1500 "building QEMU"
	package=$(source_package)
	rm -rf "$tmp"
	mkdir -p "$tmp" "$PG_LOG"
	run_logged "unpacking and patching $(basename "$package")" "$log.patch" "" lay_out "$package" "$tmp/qemu" || {
		rm -rf "$tmp"
		die "the source of QEMU could not be prepared, see above and $log.patch"
	}
	use_ccache "$tmp"
	run_logged "building QEMU ($PG_JOBS jobs; about 10 CPU minutes)" "$log" "$(progress "$log")" \
		compile "$tmp/qemu" "$tmp/build" || {
			rm -rf "$tmp"
			die "QEMU does not build; the whole log: $log. $howto"
		}
	mkdir "$tmp/done"
	strip -o "$tmp/done/qemu-system-x86_64" "$tmp/build/qemu-system-x86_64"
	"$tmp/done/qemu-system-x86_64" --version >"$tmp/done/version"
	mv "$tmp/done" "$dir"
	rm -rf "$tmp"
	# What belongs to patches of last week is in nobody's way, but for its size.
	find "$PG_CACHE" -maxdepth 1 -name 'qemu-*' ! -name 'qemu-src-*' ! -path "$dir" -mtime +14 -exec rm -rf {} +
}

main() {
	local key dir log=$PG_LOG/qemu.log
	need_packages "${packages[@]}"
	if [ -n "${QEMU_SRC:-}" ]; then
		[ -f "$QEMU_SRC/accel/tcg/cputlb.c" ] || die "QEMU_SRC=$QEMU_SRC is no QEMU source tree"
		QEMU_SRC=$(cd "$QEMU_SRC" && pwd -P)
		dir=$QEMU_SRC/build-pghot
		use_ccache "$QEMU_SRC"
		run_logged "building QEMU in $dir" "$log" "$(progress "$log")" compile "$QEMU_SRC" "$dir" ||
			die "QEMU does not build; the whole log: $log"
		printf '%s\n' "$dir/qemu-system-x86_64"
		return
	fi
	key=$( (cd "$patches" && cat series && grep -v '^ *\(#\|$\)' series | xargs cat
		printf '%s\n' "${configure[@]}") | sha256sum | cut -c1-12)
	dir=$PG_CACHE/qemu-$key
	[ -x "$dir/qemu-system-x86_64" ] || with_lock qemu build "$dir"
	printf '%s\n' "$dir/qemu-system-x86_64"
}

case ${1:-build} in
build) main ;;
source)
	need_packages git "${packages[@]}"
	dir=$PG_BUILD/qemu-source
	mkdir -p "$PG_LOG"
	[ ! -e "$dir" ] || die "$dir is there already: work in it, or remove it"
	package=$(with_lock qemu source_package)
	run_logged "unpacking and patching" "$PG_LOG/qemu-source.log" "" lay_out_git "$package" "$dir.tmp" || {
		rm -rf "$dir.tmp"
		die "the patches do not apply, see $PG_LOG/qemu-source.log"
	}
	mv "$dir.tmp" "$dir"
	printf '%s\n' "$dir" ;;
export)
	dir=${QEMU_SRC:-$PG_BUILD/qemu-source}
	git -C "$dir" rev-parse -q --verify base^0 >/dev/null ||
		die "$dir is no git repository with a tag 'base': see qemu.sh source"
	[ -z "$(git -C "$dir" status --porcelain -uno)" ] || die "$dir has changes that are not committed"
	tmp=$(mktemp -d "${TMPDIR:-/tmp}/pghot-export.XXXXXX")
	on_exit "rm -rf '$tmp'"
	git -C "$dir" format-patch -q --zero-commit --no-signature --no-stat --no-numbered --abbrev=12 \
		-o "$tmp" base..HEAD
	rm -f "$patches"/*.patch
	# They shall change only with what is in them, not with who made the commit, and when.
	for p in "$tmp"/*.patch; do
		sed -e '1a From: pghot <pghot@localhost>' -e '2,/^Subject:/{/^Subject:/!d}' "$p" >"$patches/$(basename "$p")"
	done
	{
		echo "# In this order onto Debian 12's QEMU 7.2; made by qemu.sh export."
		cd "$tmp" && printf '%s\n' *.patch
	} >"$patches/series"
	say "machine/qemu: $(($(wc -l <"$patches/series") - 1)) patches" ;;
*) die "usage: qemu.sh [build|source|export]" ;;
esac
