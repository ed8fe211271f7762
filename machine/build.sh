#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build.sh [--config-only] VARIANT [MAKE-TARGET...]
#
# Builds the patched kernel (bzImage, or the make targets given) in the variant
# that machine/config/VARIANT.config describes, and prints the build directory.
# "small+foo" adds foo.config's lines to small's. BASE_CONFIG=file builds with
# that complete .config plus the variant's own lines (not its bases).
#
# Variables: KSRC (see source.sh), JOBS, CCACHE_DIR, CCACHE_MAXSIZE, CC.

# build() is called by with_lock, which shellcheck does not see.
# shellcheck disable=SC2317

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$PG_MACHINE/source.sh"

# fragments VARIANT: the files, basis first.
fragments() {
	local v file base
	for v in ${1//+/ }; do
		file=$PG_MACHINE/config/$v.config
		[ -f "$file" ] || die "no variant '$v'. There are: $(cd "$PG_MACHINE/config" && echo *.config | sed 's/\.config//g')"
		base=$(sed -n 's/^# Base: *//p' "$file")
		[ -z "$base" ] || fragments "$base"
		printf '%s\n' "$file"
	done | awk '!seen[$0]++'
}

# Options that a fragment asks for and that are not so in .config.
check_config() {
	local cfg=$1 bad
	shift
	bad=$(awk -v cfg="$cfg" '
		# Later fragments win over earlier ones.
		/^CONFIG_[A-Z0-9_a-z]+=/ {
			i = index($0, "="); want[substr($0, 1, i - 1)] = substr($0, i + 1)
		}
		END {
			while ((getline line < cfg) > 0) {
				if (match(line, /^CONFIG_[A-Za-z0-9_]+=/)) {
					i = index(line, "="); have[substr(line, 1, i - 1)] = substr(line, i + 1)
				}
			}
			for (s in want) {
				w = want[s] == "n" ? "" : want[s]
				# Empty: whatever it is, even absent.
				if (want[s] == "" || want[s] == "\"\"")
					continue
				if ((s in have ? have[s] : "") != w)
					print s, want[s], (s in have ? have[s] : "n")
			}
		}' "$@" | sort)
	[ -n "$bad" ] || return 0
	local sym want have text=
	while read -r sym want have; do
		if [[ $sym =~ ^CONFIG_(PGHOT|AMD_MEMPROF|.*IBS) ]] &&
		   ! grep -rqE "^\s*(menu)?config ${sym#CONFIG_}\$" --include='Kconfig*' "$tree/mm" "$tree/arch/x86"; then
			say "note: this tree has no $sym (yet); left out"
			continue
		fi
		text+="
	$sym=$want is asked for, but it is $have"
	done <<<"$bad"
	[ -z "$text" ] || die "configuration '$variant': options without effect (a dependency is missing, or the name is wrong):$text
	See $(printf '%s ' "${frags[@]#"$PG_TOP"/}")"
}

# The variables of our own Makefile mean something else to the kernel's.
make_kernel() {
	env -u FILES -u OUT -u CONFIG -u VARIANT -u CMD -u CPUS -u APPEND -u HMAT -u LATENCY -u QEMU \
		-u JOBS -u TIMEOUT make -C "$tree" O="$dir" "${mkargs[@]}" "$@"
}

configure() {
	local base=tinyconfig merge=("${frags[@]}")
	# Removed first and written last: without it, configure again.
	rm -f "$dir/.pghot-config"
	mkdir -p "$dir"
	if [ -n "${BASE_CONFIG:-}" ]; then
		cp "$BASE_CONFIG" "$dir/.config.base"
	else
		make_kernel "$base" >"$log.config" 2>&1 || { tail -n 30 "$log.config" >&2; die "make $base failed, see $log.config"; }
		mv "$dir/.config" "$dir/.config.base"
	fi
	(cd "$tree" && KCONFIG_CONFIG=$dir/.config scripts/kconfig/merge_config.sh -m -Q -O "$dir" \
		"$dir/.config.base" "${merge[@]}") >>"$log.config" 2>&1 ||
		{ tail -n 30 "$log.config" >&2; die "merging the configuration failed, see $log.config"; }
	make_kernel olddefconfig >>"$log.config" 2>&1 ||
		{ tail -n 30 "$log.config" >&2; die "make olddefconfig failed, see $log.config"; }
	check_config "$dir/.config" "${merge[@]}"
	printf '%s\n' "$confkey" >"$dir/.pghot-config"
}

main() {
	local variant=$1 tree work dir log frags key kkey compiler stamp confkey
	local targets=("${@:2}") mkargs
	((${#targets[@]})) || targets=(bzImage)
	mapfile -t frags < <(fragments "$variant")
	((${#frags[@]})) || exit 1
	if [ -n "${BASE_CONFIG:-}" ]; then
		[ -f "$BASE_CONFIG" ] || die "CONFIG=$BASE_CONFIG: no such file"
		frags=("$PG_MACHINE/config/${variant##*+}.config")
	fi
	work=$(work_dir)
	tree=$work/tree
	dir=$tree/.build-$variant${BASE_CONFIG:+-$(short_hash "$(cat "$BASE_CONFIG")")}
	log=$PG_LOG/build-$variant.log
	mkdir -p "$PG_LOG"
	compiler=$("${CC:-gcc}" --version 2>/dev/null | head -n 1) || compiler=none

	# Nothing changed since it was built: say so without waiting for anyone.
	# A person's own tree may have changed anywhere, which takes a look.
	stamp_of() {
		confkey=$( (cat "${frags[@]}" ${BASE_CONFIG:+"$BASE_CONFIG"}; echo "$2 $compiler") | sha256sum)
		stamp=$( (cat "${frags[@]}" "$PG_MACHINE/build.sh"; echo "$1 $confkey ${targets[*]} ${KCFLAGS:-}") | sha256sum)
	}
	if [ -z "$KSRC" ] && read -r key kkey < <(python3 "$PG_MACHINE/tree.py" key --tree "$tree" --state "$work/state.json"); then
		stamp_of "$key" "$kkey"
		if [ "$(cat "$dir/.pghot-stamp" 2>/dev/null)" = "$stamp" ] && [ -z "$config_only" ]; then
			printf '%s\n' "$dir"
			exit 0
		fi
	fi

	with_lock "$(basename "$work")" build
	printf '%s\n' "$dir"
	# Not a return: bash would read on in a file that may have been edited
	# during a long build.
	exit 0
}

build() {
	local start=$SECONDS before total count there
	# Another run with the same cache may be fetching the source just now.
	with_lock source patched_tree >/dev/null
	read -r key kkey < <(python3 "$PG_MACHINE/tree.py" key --tree "$tree" --state "$work/state.json") ||
		die "the repository changed while the tree was laid out: run this again"
	stamp_of "$key" "$kkey"
	[ "$(cat "$dir/.pghot-stamp" 2>/dev/null)" != "$stamp" ] || return 0

	need_space "$PG_CACHE" 1000 "a kernel build"
	# Fixed, so that equal input gives equal objects and ccache finds them. The
	# build directory stands in the source tree, which lets kbuild use relative
	# names only: all checkouts and variants share the compiler's cache.
	mkargs=(-j"$PG_JOBS" KBUILD_BUILD_TIMESTAMP='2026-01-01' KBUILD_BUILD_USER=pghot
		KBUILD_BUILD_HOST=pghot KBUILD_BUILD_VERSION=1)
	if command -v ccache >/dev/null; then
		export CCACHE_DIR=${CCACHE_DIR:-$PG_CACHE/ccache}
		export CCACHE_BASEDIR=$tree CCACHE_NOHASHDIR=1
		export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-5G}
		export CCACHE_SLOPPINESS=time_macros
		# Plain gcc is found through the name cc; the cache checks by content.
		export CCACHE_COMPILERCHECK=content
		mkargs+=(CC="ccache ${CC:-gcc}")
	fi
	if [ "$(cat "$dir/.pghot-config" 2>/dev/null)" != "$confkey" ]; then
		configure
	fi
	if [ -n "$config_only" ]; then
		return
	fi
	rm -f "$dir/.pghot-stamp"
	# How many steps this will take: known from last time, else an estimate.
	total=$(cat "$PG_CACHE/steps-$variant" 2>/dev/null || sed -n 's/^# Objects: *//p' "${frags[@]}" | tail -n 1)
	before=$([ -e "$dir/vmlinux" ] && echo 1 || echo 0)
	count="grep -cE '^  (CC|AS|AR|LD|HOSTCC) ' '$log' | tr -d '\n'"
	if ((before)); then
		count="$count; echo ' steps'"
	else
		# Each object is a step; what an interrupted build left is not done again.
		there=$(find "$dir" -name '*.o' | wc -l)
		((there == 0)) || say "kernel '$variant': going on with a build that was interrupted ($there objects are there)"
		total=$((${total:-1500} - there))
		count="$count; echo ' of about $((total > 0 ? total : 1)) steps'"
	fi
	run_logged "kernel '$variant' (${targets[*]}, $PG_JOBS jobs)" "$log" "$count" make_kernel "${targets[@]}" ||
		die "the kernel build failed. The whole log: $log
	Mend what it says and run this again; what was built so far is kept."
	if ! ((before)) && [ -e "$dir/vmlinux" ]; then
		grep -cE '^  (CC|AS|AR|LD|HOSTCC) ' "$log" >"$PG_CACHE/steps-$variant" || true
	fi
	if grep -qE '(warning|WARNING): ' "$log"; then
		say "the build has warnings:"
		grep -E '(warning|WARNING): ' "$log" | head -n 10 >&2
	fi
	printf '%s\n' "$stamp" >"$dir/.pghot-stamp"
	say "kernel '$variant': ready after $(hms $((SECONDS - start)))"
}

config_only=
if [ "${1:-}" = --config-only ]; then
	config_only=1
	shift
fi
(($#)) || die "usage: build.sh [--config-only] VARIANT [MAKE-TARGET...]
	variants: $(cd "$PG_MACHINE/config" && echo *.config | sed 's/\.config//g')"
need_packages "${PG_PKG_BUILD[@]}"
main "$@"
