#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# configs.sh NAME: compiles what the series adds and touches in another
# configuration: a variant of machine/config, or allno, allmod, arm64.

set -euo pipefail
PG_MACHINE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$PG_MACHINE/check/lib.sh"

need_packages "${PG_PKG_BUILD[@]}"
name=$1
tree=$("$PG_MACHINE/source.sh" tree)
dir=$tree/.build-check-$name
raw=$PG_CHECK_OUT/config-$name.raw

# Files of another architecture are not for this one.
arch=x86
[ "$name" != arm64 ] || arch=arm64
mine() { awk -v arch="$arch" -F/ '$1 != "tools" && ($1 != "arch" || $2 == arch)'; }

mapfile -t dirs < <(new_files | grep '\.c$' | mine | xargs -n 1 dirname | sort -u)
mapfile -t objects < <(touched_objects | mine)

# option NAME VALUE: the configuration has that, or the check checks nothing.
option() {
	local have
	have=$(sed -n "s/^CONFIG_$1=//p" "$dir/.config")
	[ "${have:-n}" = "$2" ] || fail "CONFIG_$1 is ${have:-n} and not $2"
}

# add_options NAME...: sets them to y on top of .config.
add_options() {
	local fragment o
	fragment=$(mktemp "${TMPDIR:-/tmp}/pghot-options.XXXXXX")
	on_exit "rm -f '$fragment'"
	printf 'CONFIG_%s=y\n' "$@" >"$fragment"
	merge_config "$tree" "$dir" "$fragment"
	for o; do
		option "$o" y
	done
}

build() {
	without_warnings "$raw" "$dir" kernel_make "$tree" "$dir" "$@" || fail "configuration $name: see above"
	# A file that was left out has not been checked.
	local f
	for f in "${objects[@]}"; do
		[ -f "$dir/$f" ] || [[ " ${may_lack:-} " = *" $f "* ]] || fail "$f was not built"
	done
	find "$dir/mm" "$dir/kernel/sched" -name '*.o' | wc -l | sed 's/$/ objects there/'
}

case $name in
allno)
	kernel_make "$tree" "$dir" allnoconfig
	option PGHOT n
	option NUMA n
	# Nothing of it is there without NUMA, control groups and migration.
	may_lack="${objects[*]}"
	build prepare mm/ kernel/sched/
	;;
allmod)
	kernel_make "$tree" "$dir" allmodconfig
	# The tests are linked into the kernel, which a modular KUnit does not allow.
	add_options KUNIT PGHOT_KUNIT_TEST
	option PGHOT y
	option WERROR y
	mapfile -t objects < <(printf '%s\n' "${objects[@]}" | in_configuration "$tree" "$dir")
	build prepare "${dirs[@]/%//}" "${objects[@]}"
	;;
arm64)
	need_packages gcc-aarch64-linux-gnu
	export ARCH=arm64
	kernel_make "$tree" "$dir" defconfig
	add_options NUMA NUMA_BALANCING NUMA_MIGRATION MEMORY_HOTPLUG MEMORY_HOTREMOVE \
		TRANSPARENT_HUGEPAGE MEMCG CPUSETS SYSCTL KUNIT PGHOT PGHOT_KUNIT_TEST
	build prepare "${dirs[@]/%//}" "${objects[@]}"
	;;
*)
	# build.sh verifies that each option of the variant has its effect.
	dir=$tree/.build-$name
	"$PG_MACHINE/build.sh" --config-only "$name" >/dev/null
	mapfile -t objects < <(printf '%s\n' "${objects[@]}" | in_configuration "$tree" "$dir")
	targets=(prepare "${dirs[@]/%//}" "${objects[@]}")
	[ "$name" != nosmp ] || may_lack='mm/memory-tiers.o mm/mempolicy.o'
	case $name in
	off)
		# mm as a whole: same-code compares what comes of it.
		targets=(prepare mm/ kernel/sched/)
		for f in "${objects[@]}"; do
			case $f in mm/* | kernel/sched/*) ;; *) targets+=("$f") ;; esac
		done
		;;
	nosmp)
		# No NUMA, and so not all of the files.
		targets=(prepare)
		for f in "${objects[@]}"; do
			[[ " $may_lack " = *" $f "* ]] || targets+=("$f")
		done
		;;
	esac
	without_warnings "$raw" "$dir" "$PG_MACHINE/build.sh" "$name" "${targets[@]}" || fail "configuration $name: see above"
	# build.sh's own log has the compiler's words.
	if [ -n "$(warnings_in "$PG_LOG/build-$name.log")" ]; then
		warnings_in "$PG_LOG/build-$name.log"
		find "$dir" \( -name '*.o' -o -name .pghot-stamp \) -delete
		fail "configuration $name: warnings"
	fi
	case $name in
	off | nosmp) option PGHOT n ;;
	*) option PGHOT y ;;
	esac
	for f in "${objects[@]}"; do
		[ -f "$dir/$f" ] || [[ " ${may_lack:-} " = *" $f "* ]] || fail "$f was not built"
	done
	;;
esac
