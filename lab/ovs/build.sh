#!/usr/bin/env bash
# Build Open vSwitch with the actions rewrite_rwnd and mark_ce once and print the folder with its programs and schema.
# Inputs: Debian's source package openvswitch, patches of ../../ap-exporter/openwrt/openvswitch. Output: the cache,
# under a hash of those inputs. About 80 CPU-seconds; OVS_TARBALL=FILE takes the sources from a file instead of
# Debian.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
patches=$here/../../ap-exporter/openwrt/openvswitch/patches
version=4.0.0
sha256=2b4d75ed077e94bc649ffbc9be5f9f822db82cf266c920cb3060f94db9d6d796
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oal/lab
programs=(vswitchd/ovs-vswitchd ovsdb/ovsdb-server ovsdb/ovsdb-tool ovsdb/ovsdb-client utilities/ovs-vsctl \
    utilities/ovs-ofctl utilities/ovs-appctl)

hash=$({ echo "$version"; cat "$here/build.sh" "$patches"/*.patch; } | sha256sum | cut -c1-16)
out=$cache/ovs-$hash
mkdir -p "$cache"
exec 9>"$cache/ovs.lock"
flock 9
if [ -x "$out/ovs-vswitchd" ]; then echo "$out"; exit 0; fi
"$here/../../platform/setup/apt" build-essential patch xz-utils dpkg-dev python3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Debian's development release is where this version is; its package lists are fetched into a folder of ours, not into
# the system's. 77: it has other versions only. Whatever else goes wrong is 1, said step by step: `set -e` does not hold
# in a command substitution.
fetch() {
	local apt versions package
	mkdir -p "$work/lists/partial"
	sed 's/^Types: deb$/Types: deb-src/; s/^Suites:.*/Suites: sid/' /etc/apt/sources.list.d/debian.sources |
		awk 'BEGIN { RS = ""; ORS = "\n\n" } !/debian-security/' >"$work/src.sources"
	apt=(-qq -o APT::Sandbox::User=root -o Dir::Etc::sourcelist="$work/src.sources" -o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$work/lists")
	apt-get "${apt[@]}" update --error-on=any >&2 || return 1
	versions=$(apt-cache "${apt[@]}" showsrc openvswitch | sed -n 's/^Version: //p')
	[ -n "$versions" ] || { echo "lab: Debian's package lists name no sources of openvswitch at all" >&2; \
		return 1; }
	package=$(grep "^$version-" <<<"$versions" | tail -1)
	[ -n "$package" ] || {
		echo "lab: Debian no longer has the sources of openvswitch $version;" \
			"get openvswitch_$version.orig.tar.xz elsewhere and pass it as OVS_TARBALL" >&2
		return 77
	}
	(cd "$work" && apt-get "${apt[@]}" source --download-only "openvswitch=$package" >&2) || return 1
	echo "$work/openvswitch_$version.orig.tar.xz"
}
tarball=${OVS_TARBALL:-$cache/openvswitch_$version.orig.tar.xz}
if [ ! -e "$tarball" ]; then
	[ -z "${OVS_TARBALL:-}" ] || { echo "lab: there is no $OVS_TARBALL" >&2; exit 1; }
	fetched=$(fetch) || exit # with 77 tests leave Open vSwitch out, and say so
	mv "$fetched" "$tarball"
fi
echo "$sha256  $tarball" | sha256sum --quiet -c - >&2 || { echo \
    "lab: $tarball is not the openvswitch $version that the patches were made for" >&2; exit 1; }

echo "lab: building Open vSwitch $version with the actions of OAL (about 80 CPU-seconds, once; log: $cache/ovs.log)" >&2
# In a folder of its own for these inputs, so that a build which was interrupted goes on where it was; it is removed at
# the end.
tree=$cache/ovs-tree-$hash
if [ ! -e "$tree/.patched" ]; then
	rm -rf "$tree"
	mkdir -p "$tree"
	tar xf "$tarball" -C "$tree" --strip-components=1
	for change in "$patches"/*.patch; do patch -s -d "$tree" -p1 <"$change"; done
	mkdir "$tree/debian"
	# Nothing that autotools made is to be made again, so that they are not needed here; Debian's archive lacks two
	# files that it depends on.
	(cd "$tree" && touch debian/automake.mk manpages.mk aclocal.m4 configure config.h.in Makefile.in .patched)
fi
cd "$tree"
{
	[ -e config.status ] || ./configure --quiet --disable-ssl --disable-libcapng --disable-shared \
		--disable-dependency-tracking CFLAGS="-O2 -Wno-deprecated-declarations" \
		--prefix=/usr --sysconfdir=/etc --localstatedir=/var
	printf 'include Makefile\nbuilt-sources: $(BUILT_SOURCES)\n' >built-sources.mk
	nice -n 5 make -s -f built-sources.mk built-sources
	nice -n 5 make -s -j"${JOBS:-2}" "${programs[@]}" vswitchd/vswitch.ovsschema
} >"$cache/ovs.log" 2>&1 || { tail -30 "$cache/ovs.log" >&2; exit 1; }
mkdir -p "$out.new"
for program in "${programs[@]}"; do strip -o "$out.new/$(basename "$program")" "$program"; done
cp vswitchd/vswitch.ovsschema "$out.new/"
rm -rf "$out"; mv "$out.new" "$out"
rm -rf "$tree"
echo "$out"
