#!/usr/bin/env bash
# Build the kernel of a full-system guest once, from Debian's linux-source-6.12, and ap-exporter/kmod for it; print the
# path of the kernel's binary, beside which oal_sampler.ko stands.
# usage: build.sh mips|x86_64. Output: the cache, under a hash of what makes it.
set -euo pipefail
machine=$1
here=$(cd "$(dirname "$0")" && pwd)
module=$here/../../../ap-exporter/kmod
header=$here/../../../ap-exporter/src/kmod/oal_sampler.h
source_tar=/usr/src/linux-source-6.12.tar.xz
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oal/system
packages=(linux-source-6.12 build-essential flex bison bc xz-utils patch kmod ccache)
case $machine in
mips) make=(make ARCH=mips); cross=mips-linux-gnu-; packages+=(gcc-mips-linux-gnu); binary=vmlinux ;;
x86_64) make=(make ARCH=x86_64); cross=; packages+=(libelf-dev); binary=arch/x86/boot/bzImage ;;
*) echo "system: no such machine: $machine" >&2; exit 1 ;;
esac

"$here/../../../platform/setup/apt" "${packages[@]}"
version=$(dpkg-query -W -f='${Version}' linux-source-6.12)
hash=$({ echo "$version" "$machine"; cat "$here/build.sh" "$here/common.fragment" "$here/$machine.fragment" \
    "$here"/*.patch "$module"/Kbuild "$module"/*.[ch] "$header"; } | sha256sum | cut -c1-16)
out=$cache/kernel-$machine-$hash
mkdir -p "$cache"
exec 9>"$cache/kernel.lock"
flock 9
if [ -e "$out/oal_sampler.ko" ]; then echo "$out/$(basename "$binary")"; exit 0; fi

# Sources and object files are kept: a change of the configuration or of a patch compiles what it touches.
tree=$cache/tree-$(printf %s "$version" | tr -c 'A-Za-z0-9.\n' _)
pristine=$tree/.pristine
if [ ! -e "$tree/.complete" ]; then
	echo "system: unpacking $source_tar (1.7 GB) into $tree" >&2
	rm -rf "$tree"; mkdir -p "$tree"
	tar xf "$source_tar" -C "$tree" --strip-components=1
	touch "$tree/.complete"
fi
# What patches touch, and touched before, is as it came, then patched; a file that stays the same keeps its time.
patched=$(mktemp -d)
trap 'rm -rf "$patched"' EXIT
for file in $(sed -n 's|^+++ b/||p' "$here"/*.patch); do
	[ -e "$pristine/$file" ] || install -D "$tree/$file" "$pristine/$file"
done
cp -r "$pristine/." "$patched"
for change in "$here"/*.patch; do patch -s -d "$patched" -p1 <"$change"; done
(cd "$patched" && find . -type f) | while IFS= read -r file; do
	cmp -s "$patched/$file" "$tree/$file" || cp "$patched/$file" "$tree/$file"
done
objects=$tree-$machine
mkdir -p "$objects"
cat "$here/common.fragment" "$here/$machine.fragment" >"$objects/wanted"
export CCACHE_DIR=$cache/ccache CCACHE_MAXSIZE=1G
make+=(-C "$tree" O="$objects" -s CROSS_COMPILE="$cross" CC="ccache ${cross}gcc")
KCONFIG_ALLCONFIG=$objects/wanted "${make[@]}" allnoconfig >&2
while IFS= read -r line; do
	case $line in
	CONFIG_*=n) ! grep -q "^${line%=n}=" "$objects/.config" ;;
	CONFIG_*) grep -qxF "$line" "$objects/.config" ;;
	esac || { echo "system: Kconfig did not take $line for $machine" >&2; exit 1; }
done <"$objects/wanted"
log=$cache/kernel-$machine.log
echo "system: building the $machine kernel in $objects (once, some 6 CPU-minutes; log: $log)" >&2
make_it() { "${make[@]}" -j"${JOBS:-2}" "$@" >>"$log" 2>&1 || { tail -30 "$log" >&2; exit 1; }; }
: >"$log"
make_it "$(basename "$binary")" modules
build=$objects/oal_sampler
rm -rf "$build"; mkdir "$build"
cp "$module"/Kbuild "$module"/*.[ch] "$header" "$build/"
make_it M="$build" KCFLAGS=-Werror modules
mkdir -p "$out.new"
if [ "$binary" = vmlinux ]; then "${cross}strip" -o "$out.new/vmlinux" "$objects/vmlinux"
else cp "$objects/$binary" "$out.new/"; fi
cp "$objects/System.map" "$out.new/"
cp "$objects/.config" "$out.new/config"
"${cross}strip" --strip-debug -o "$out.new/oal_sampler.ko" "$build/oal_sampler.ko"
rm -rf "$out"; mv "$out.new" "$out"
echo "$out/$(basename "$binary")"
