#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make deb: a Debian package of the patched kernel, made by the kernel's own
# bindeb-pkg, in build/deb/. Configuration: the running distribution kernel's;
# CONFIG=file another complete one; CONFIG=small (or another variant) that of the
# test machine's guest. PGHOT is switched on in any case.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The configuration of the kernel that runs here, or the newest that Debian has.
distribution_config() {
	local pkg file
	if [ -r "/boot/config-$(uname -r)" ]; then
		printf '%s\n' "/boot/config-$(uname -r)"
		return
	fi
	say "there is no /boot/config-$(uname -r); using the configuration that Debian packages"
	pkg=$(apt-cache search --names-only '^linux-config-[0-9.]+$' 2>/dev/null | awk '{ print $1 }' | sort -V | tail -n 1)
	if [ -n "$pkg" ]; then
		need_packages "$pkg"
		file=/usr/src/$pkg/config.amd64_none_amd64.xz
		if [ -r "$file" ]; then
			mkdir -p "$PG_BUILD/deb"
			xz -dc "$file" >"$PG_BUILD/deb/config"
			printf '%s\n' "$PG_BUILD/deb/config"
			return
		fi
	fi
	die "found no configuration: neither /boot/config-$(uname -r) nor a package linux-config-*.
	Give one: make deb CONFIG=/path/to/config   (or CONFIG=small, the test guest's)"
}

need_packages "${PG_PKG_BUILD[@]}" "${PG_PKG_DEB[@]}"
config=${CONFIG:-}
unset CONFIG
suffix=-pghot
if [ -z "$config" ]; then
	config=$(distribution_config)
fi
if [ -f "$config" ]; then
	variant=deb
	BASE_CONFIG=$(realpath "$config")
	export BASE_CONFIG
	# pahole, for BTF; DWARF's reader
	need_packages dwarves libdw-dev
	need_space "$PG_CACHE" 25000 "a distribution kernel"
	say "configuration: $config. A distribution's kernel takes hours on a small machine ($PG_JOBS jobs here)."
elif [ -f "$PG_MACHINE/config/$config.config" ]; then
	variant=$config+deb
	suffix=-pghot-$config
	need_packages libdw-dev
	need_space "$PG_CACHE" 2000 "a kernel package"
else
	die "CONFIG=$config is neither a file nor a variant ($(cd "$PG_MACHINE/config" && echo *.config | sed 's/\.config//g'))"
fi

out=$PG_BUILD/deb
tree=$("$PG_MACHINE/source.sh" work)/tree
mkdir -p "$out"
# dpkg puts the packages beside the build directory. If those of an earlier run
# are gone, "nothing changed" does not do.
if ! compgen -G "$tree/linux-image-*${suffix}_*.deb" >/dev/null; then
	rm -f "$tree/.build-$variant"*/.pghot-stamp
fi
# The package with the debug information is 1 GB that few want.
export DEB_BUILD_PROFILES=${DEB_BUILD_PROFILES:-pkg.linux-upstream.nokerneldbg}
export KDEB_CHANGELOG_DIST=unstable
if name=$(git -C "$PG_TOP" config user.name) && email=$(git -C "$PG_TOP" config user.email); then
	export DEBFULLNAME=${DEBFULLNAME:-$name} DEBEMAIL=${DEBEMAIL:-$email}
fi
"$PG_MACHINE/build.sh" "$variant" bindeb-pkg "LOCALVERSION=$suffix" >/dev/null
rm -f "$out"/*"$suffix"_*.deb
cp "$tree"/linux-*"${suffix}"_*.deb "$out/"
say "packages:"
ls -1sh "$out"/*.deb >&2
image=$(find "$out" -name "linux-image-*${suffix}_*.deb" ! -name '*-dbg_*' | head -n 1)
say "install: sudo apt-get install ${image#"$PWD"/}   (then reboot into it)"
say "try in the guest first: machine/deb-boot-test.sh ${image#"$PWD"/}"
printf '%s\n' "$image"
