#!/usr/bin/env bash
# Print the folder of the programs of helm/tools (Kubernetes, etcd, kwok, helm, kubeconform); built once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's#^\tk8s.io/kubernetes v\([0-9.]*\).*#\1#p' "$here/../tools/go.mod")
IFS=. read -r major minor _ <<<"$version"
package=k8s.io/component-base/version
flags="-s -w -X $package.gitVersion=v$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
exec "$here/../../platform/setup/gotool" "$here/../tools" -ldflags \
    "$flags -X $package.gitTreeState=clean"
