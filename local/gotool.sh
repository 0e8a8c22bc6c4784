#!/usr/bin/env bash
# Build (once) the programs that a go.mod names as tools and print the folder they are in. Safe to run again and in parallel.
# usage: local/gotool.sh FOLDER [go build flags...]    FOLDER holds go.mod and go.sum; programs get their package's name, or the
#        module's where that is main.  TOOLS="package ..." builds these instead of all tools of the go.mod.
set -euo pipefail
folder=$(cd "$1" && pwd); shift
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oal
cd "$folder"
tools=${TOOLS:-$(go mod edit -json | python3 -c 'import json, sys; print(*(t["Path"] for t in json.load(sys.stdin).get("Tool") or []))')}
id=$( (cat go.mod go.sum; go version; echo "$tools" "$@") | sha256sum | cut -c1-16)
dir=$cache/gotool/$id
mkdir -p "$cache/gotool"
exec 9>"$cache/gotool/$id.lock"
flock 9
if [ ! -f "$dir/.complete" ]; then
    echo "setup: building $tools (once; the Go build cache makes a second time short)" >&2
    mkdir -p "$dir"
    # shellcheck disable=SC2086  # a list of packages
    CGO_ENABLED=0 go build -buildvcs=false -trimpath -o "$dir/" "$@" $tools >&2
    touch "$dir/.complete"
fi
echo "$dir"
