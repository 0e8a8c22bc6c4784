#!/usr/bin/env bash
# Build the lab's User-Mode-Linux kernel once and print the path of the binary.
# Inputs: Debian's linux-source-6.1, kernel/config.fragment, medium/, the Open vSwitch actions of ap-exporter/openwrt,
# the congestion controls of policies/.
# LAB_KERNEL=6.12 builds that kernel instead, without the medium: for what needs no Wi-Fi.
# Output: the cache, under a hash of those inputs.
set -euo pipefail
kernel=${LAB_KERNEL:-6.1}
case $kernel in
6.1 | 6.12) ;;
*) echo "lab: LAB_KERNEL=$kernel: there are patches for 6.1 and 6.12" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
lab=$(dirname "$here")
ovs_patches=("$lab/../ap-exporter/openwrt/openvswitch/kernel-$kernel"/*.patch)
loss_cause=$lab/../policies/loss-cause
learned_ecn=$lab/../policies/learned-ecn
source_tar=/usr/src/linux-source-$kernel.tar.xz
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oal/lab

"$lab/../platform/setup/apt" "linux-source-$kernel" build-essential flex bison bc xz-utils patch
version=$(dpkg-query -W -f='${Version}' "linux-source-$kernel")
hash=$({ echo "$version"; cat "$here/build.sh" "$here/config.fragment" "$lab"/medium/*.[ch] "$lab"/medium/*.patch \
    "$here"/*.patch "${ovs_patches[@]}" "$loss_cause"/ca_kernel.c "$loss_cause"/ca.h \
    "$loss_cause"/ca_check.h "$loss_cause"/law.h "$learned_ecn"/ca_kernel.c "$learned_ecn"/ca.h \
    "$learned_ecn"/ca_check.h; } | sha256sum | cut -c1-16)
out=$cache/kernel-$hash
mkdir -p "$cache"
exec 9>"$cache/kernel.lock"
flock 9
if [ -x "$out/linux" ]; then echo "$out/linux"; exit 0; fi

# The tree is kept between builds: a change of the medium recompiles the few files that are patched, not the kernel.
tree=$cache/tree-$(printf %s "$version" | tr -c 'A-Za-z0-9.\n' _)
pristine=$tree/.pristine
changes=("$here/um-xstate-6.1.patch" "${ovs_patches[@]}")
patched=(arch/x86/um/os-Linux/registers.c
	include/uapi/linux/openvswitch.h net/openvswitch/actions.c net/openvswitch/flow_netlink.c)
if [ "$kernel" = 6.1 ]; then
	changes+=("$lab/medium/hwsim-medium-6.1.patch" "$here/tcp-ect1-6.1.patch")
	patched+=(drivers/net/wireless/mac80211_hwsim.c net/mac80211/tx.c net/ipv4/tcp_output.c net/ipv4/Makefile
		net/core/dev.c net/sched/sch_cake.c net/sched/sch_codel.c net/sched/sch_fq_codel.c)
fi
jobs=${JOBS:-2}
if [ ! -e "$pristine/.complete" ]; then
	echo "lab: unpacking $source_tar (1.4 GB) into $tree" >&2
	rm -rf "$tree"; mkdir -p "$tree"
	tar xf "$source_tar" -C "$tree" --strip-components=1
	mkdir "$pristine"
	touch "$pristine/.complete"
fi
for file in "${patched[@]}"; do
	[ -e "$pristine/$file" ] || install -D "$tree/$file" "$pristine/$file" # not patched so far
done
# The next build may be another revision's, with other patches: it finds the tree as it was unpacked.
restore() { cp -r "$pristine/." "$tree/"; }
trap restore EXIT
restore
for change in "${changes[@]}"; do patch -s -d "$tree" -p1 <"$change"; done
if [ "$kernel" = 6.1 ]; then
	rm -rf "$tree/drivers/net/wireless/hwsim_medium"
	mkdir "$tree/drivers/net/wireless/hwsim_medium"
	cp "$lab"/medium/*.[ch] "$tree/drivers/net/wireless/hwsim_medium/"
	cp "$loss_cause"/ca.h "$loss_cause"/ca_check.h "$loss_cause"/law.h "$tree/net/ipv4/"
	cp "$loss_cause"/ca_kernel.c "$tree/net/ipv4/tcp_oal_lc.c"
	mkdir -p "$tree/net/ipv4/loss-cause" "$tree/net/ipv4/learned-ecn"
	cp "$loss_cause"/law.h "$tree/net/ipv4/loss-cause/"
	cp "$learned_ecn"/ca.h "$learned_ecn"/ca_check.h "$tree/net/ipv4/learned-ecn/"
	cp "$learned_ecn"/ca_kernel.c "$tree/net/ipv4/learned-ecn/tcp_oal_ecn.c"
	echo 'obj-y += tcp_oal_ecn.o' >"$tree/net/ipv4/learned-ecn/Makefile"
	printf 'obj-y += tcp_oal_lc.o learned-ecn/\n' >>"$tree/net/ipv4/Makefile"
fi

cd "$tree"
KCONFIG_ALLCONFIG=$here/config.fragment make ARCH=um -s allnoconfig >&2
while IFS= read -r line; do
	case $line in
	CONFIG_*=n) ! grep -q "^${line%=n}=" .config ;;
	CONFIG_*) grep -qxF "$line" .config ;;
	esac || { echo "lab: Kconfig did not take $line; see kernel/config.fragment" >&2; exit 1; }
done <"$here/config.fragment"
echo "lab: building the User-Mode-Linux kernel in $tree (about 6 CPU-minutes the first time; log: $cache/kernel.log)" \
    >&2
make ARCH=um -s -j"$jobs" linux >"$cache/kernel.log" 2>&1 || { tail -30 "$cache/kernel.log" >&2; exit 1; }
mkdir -p "$out.new"
strip -o "$out.new/linux" linux
cp .config "$out.new/config"
rm -rf "$out"; mv "$out.new" "$out"
echo "$out/linux"
