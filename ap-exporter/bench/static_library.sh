# Sourced: build a small static library once, from the sources of this Debian release.
# static_library NAME VERSION SOURCE PACKAGE…
#   SOURCE: Debian's source package, `=VERSION` and all if one is wanted; PACKAGE: needed to build.
# Calls `make_library FOLDER` in the unpacked sources, which leaves NAME.a and include/ in FOLDER; prints that folder.
# shellcheck shell=bash
static_library() {
    local name=$1 version=$2 source=$3 cache=${XDG_CACHE_HOME:-$HOME/.cache}/oal here dir
    shift 3
    here=$(dirname "${BASH_SOURCE[0]}")
    dir=$cache/$name-$version-static
    mkdir -p "$cache"
    exec 9>"$cache/$name.lock"
    flock 9
    if [ ! -f "$dir/$name.a" ]; then
        echo "setup: building $name $version for the memory figure (once, about a minute)" >&2
        "$here/../../platform/setup/apt" libssl-dev dpkg-dev "$@" >&2
        work=$(mktemp -d)
        trap 'rm -rf "$work"' EXIT
        mkdir -p "$work/lists/partial"
        sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$work/src.sources"
        local apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/src.sources" -o Dir::Etc::sourceparts=-
            -o Dir::State::lists="$work/lists")
        (cd "$work" && "${apt[@]}" update && "${apt[@]}" source --download-only "$source" && \
            tar xf "${source%%=*}_$version.orig.tar.gz" && cd "${source%%=*}-$version" && \
            mkdir -p "$dir/include" && make_library "$dir") >"$work/log" 2>&1 || \
            { tail -20 "$work/log" >&2; exit 1; }
    fi
    echo "$dir"
}
