#!/usr/bin/env bash
# Build what the big-endian MIPS guest runs besides our own code, once: musl, as OpenWrt has it, and busybox, both from
# the sources of this Debian release. Prints the folder: bin/musl-gcc (the cross compiler against musl) and busybox.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oal/system
"$here/../../../platform/setup/apt" gcc-mips-linux-gnu libc6-dev-mips-cross dpkg-dev build-essential bzip2 xz-utils
hash=$(cat "$here/build.sh" "$here/busybox.config" | sha256sum | cut -c1-16)
out=$cache/userland-mips-$hash
mkdir -p "$cache"
exec 9>"$cache/userland.lock"
flock 9
if [ -e "$out/busybox" ]; then echo "$out"; exit 0; fi
echo "system: building musl and busybox for MIPS (once, some 2 CPU-minutes; log: $cache/userland.log)" >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fetch_sources() {
	mkdir -p "$work/lists/partial"
	sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$work/src.sources"
	local apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/src.sources" -o Dir::Etc::sourceparts=-
	    -o Dir::State::lists="$work/lists")
	cd "$work"
	"${apt[@]}" update
	"${apt[@]}" source --download-only musl busybox
	for source in musl_*.orig.tar.* busybox_*.orig.tar.*; do
		case $source in *.asc) ;; *) tar xf "$source" ;; esac
	done
}

# Installed where it stays: its specs and its wrapper name that folder.
make_musl() {
	cd "$work"/musl-*/
	CC=mips-linux-gnu-gcc CROSS_COMPILE=mips-linux-gnu- CFLAGS='-Os -fno-asynchronous-unwind-tables' ./configure \
	    --target=mips-linux-musl --prefix="$out" --syslibdir="$out/lib" --disable-shared --enable-wrapper=gcc
	make -j"${JOBS:-2}"
	make install
	# The kernel's own headers, which musl leaves to others.
	ln -sfn /usr/mips-linux-gnu/include/linux "$out/include/linux"
	ln -sfn /usr/mips-linux-gnu/include/asm "$out/include/asm"
	ln -sfn /usr/mips-linux-gnu/include/asm-generic "$out/include/asm-generic"
}

make_busybox() {
	cd "$work"/busybox-*/
	make allnoconfig
	while IFS= read -r line; do
		case $line in CONFIG_*) sed -i "/^# ${line%%=*} is not set/d; /^${line%%=*}=/d" .config
			echo "$line" >>.config ;; esac
	done <"$here/busybox.config"
	yes '' | make oldconfig
	while IFS= read -r line; do
		case $line in CONFIG_*) grep -qxF "$line" .config || {
			echo "busybox does not take $line"
			exit 1
		} ;; esac
	done <"$here/busybox.config"
	make -j"${JOBS:-2}" CC="$out/bin/musl-gcc" CROSS_COMPILE=mips-linux-gnu- busybox
	install -m 755 busybox "$out/busybox"
}

rm -rf "$out"
(set -ex; fetch_sources; make_musl; make_busybox) >"$cache/userland.log" 2>&1 </dev/null || {
	tail -30 "$cache/userland.log" >&2; rm -rf "$out"; exit 1; }
echo "$out"
