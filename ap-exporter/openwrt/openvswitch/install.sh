#!/bin/sh
# Put the patches for the actions rewrite_rwnd and mark_ce into an OpenWrt tree, where its build picks them up by
# itself.
# usage: install.sh OPENWRT_TREE      (with the feed `packages` updated; run it again after ./scripts/feeds update)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=${1:?usage: install.sh OPENWRT_TREE}
package=$tree/feeds/packages/net/openvswitch
[ -d "$package" ] || { echo "install: no $package: ./scripts/feeds update packages" >&2; exit 1; }

mkdir -p "$package/patches"
cp "$here"/patches/*.patch "$package/patches/"
echo "install: userspace: $package/patches; made for Open vSwitch 4.0.0, the feed has:"
grep -hE '^ovs_version *:?=|^PKG_VERSION *:?=' "$package"/*.mk "$package/Makefile" 2>/dev/null | \
    sed 's/^/install:     /' || true

# Kernel patches of every target stand in target/linux/generic/hack-VERSION; the datapath's module is built from that
# kernel.
kernels=0
for folder in "$here"/kernel-*; do
	version=${folder##*kernel-}
	[ -d "$tree/target/linux/generic/hack-$version" ] || continue
	cp "$folder"/*.patch "$tree/target/linux/generic/hack-$version/"
	echo "install: kernel $version: $tree/target/linux/generic/hack-$version"
	kernels=$((kernels + 1))
done
[ $kernels -gt 0 ] || \
    echo "install: no kernel patch fits: without one vswitchd changes each clamped ACK and each packet to a" \
    "marked station itself (slow path)" >&2
