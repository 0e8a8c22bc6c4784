#!/usr/bin/env bash
# Build the User-Mode-Linux kernel that takes modules, and ap-exporter/kmod for it; print the folder with both.
# Apart from build.sh, whose kernel every recorded run names: that one has no modules and need not be built again.
# LAB_KERNEL=6.12 for that version, which is lab/router's too. Inputs: Debian's linux-source, sampler.fragment, of 6.1
# the medium, of 6.12 router.fragment and the tag of its switch, the module.
# Output: the cache; the kernel under a hash of its inputs, the module under one of its own and the kernel's.
set -euo pipefail
kernel=${LAB_KERNEL:-6.1}
case $kernel in
6.1 | 6.12) ;;
*) echo "lab: LAB_KERNEL=$kernel: there are 6.1 and 6.12" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
lab=$(dirname "$here")
module=$lab/../ap-exporter/kmod
header=$lab/../ap-exporter/src/kmod/oal_sampler.h
source_tar=/usr/src/linux-source-$kernel.tar.xz
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oal/lab

"$lab/../platform/setup/apt" "linux-source-$kernel" build-essential flex bison bc xz-utils patch kmod ccache
version=$(dpkg-query -W -f='${Version}' "linux-source-$kernel")
changes=("$here/um-xstate-6.1.patch")
fragments=("$here/sampler.fragment")
case $kernel in
6.1) changes+=("$lab/medium/hwsim-medium-6.1.patch") ;;
6.12) changes+=("$lab/router/dsa-loop-mtk-tag-6.12.patch"); fragments+=("$here/router.fragment") ;;
esac
kernel_hash=$({ echo "$version"; cat "$here/sampler.sh" "${fragments[@]}" "${changes[@]}"
    [ "$kernel" != 6.1 ] || cat "$lab"/medium/*.[ch]; } | sha256sum | cut -c1-16)
module_hash=$({ echo "$kernel_hash"; cat "$module"/Kbuild "$module"/*.[ch] "$header"; } | sha256sum | cut -c1-16)
out=$cache/sampler-$module_hash
tree=$cache/tree-sampler-$kernel_hash
log=$cache/sampler.log
mkdir -p "$cache"
exec 9>"$cache/sampler.lock"
flock 9
if [ -e "$out/oal_sampler.ko" ]; then echo "$out"; exit 0; fi

export CCACHE_DIR=$cache/ccache CCACHE_MAXSIZE=1G
make_it() {
	make -C "$tree" ARCH=um CC="ccache gcc" -s -j"${JOBS:-2}" "$@" >"$log" 2>&1 \
	    || { tail -30 "$log" >&2; exit 1; }
}
configure() {
	cat "${fragments[@]}" >"$tree/.fragment"
	if [ "$kernel" != 6.1 ]; then
		printf 'CONFIG_%s=y\n' DEBUG_ATOMIC_SLEEP PROVE_LOCKING >>"$tree/.fragment" # see there
	fi
	KCONFIG_ALLCONFIG=$tree/.fragment make -C "$tree" ARCH=um -s allnoconfig >&2
	while IFS= read -r line; do
		case $line in
		CONFIG_*=n) ! grep -q "^${line%=n}=" "$tree/.config" ;;
		CONFIG_*) grep -qxF "$line" "$tree/.config" ;;
		esac || { echo "lab: Kconfig did not take $line; see kernel/*.fragment" >&2; exit 1; }
	done <"$tree/.fragment"
}
if [ ! -e "$tree/.configured" ]; then
	rm -rf "$tree"; mkdir -p "$tree"
	# the largest drivers, which are not built, without their sources
	left_out=('*/drivers/gpu/*.[ch]' '*/drivers/media/*.[ch]' '*/sound/*.[ch]' '*/tools/testing/*' '*.dts*'
		'*/Documentation/*.rst' '*/Documentation/*.yaml')
	tar xf "$source_tar" -C "$tree" --strip-components=1 "${left_out[@]/#/--exclude=}"
	for change in "${changes[@]}"; do patch -s -d "$tree" -p1 <"$change"; done
	if [ "$kernel" = 6.1 ]; then
		mkdir "$tree/drivers/net/wireless/hwsim_medium"
		cp "$lab"/medium/*.[ch] "$tree/drivers/net/wireless/hwsim_medium/"
	fi
	configure
	touch "$tree/.configured"
fi
if [ ! -e "$tree/.complete" ]; then
	echo "lab: building Linux $kernel with modules in $tree (some 5 CPU-minutes, once; log: $log)" >&2
	make_it linux modules
	touch "$tree/.complete"
fi
build=$(mktemp -d "$cache/module-XXXXXX")
trap 'rm -rf "$build"' EXIT
cp "$module"/Kbuild "$module"/*.[ch] "$header" "$build/"
make_it M="$build" modules
rm -rf "$out.new"; mkdir -p "$out.new"
strip -o "$out.new/linux" "$tree/linux"
strip --strip-debug -o "$out.new/oal_sampler.ko" "$build/oal_sampler.ko"
rm -rf "$out"; mv "$out.new" "$out"
echo "$out"
