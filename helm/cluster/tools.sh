#!/usr/bin/env bash
# Print the folder of programs for a cluster on this machine; each is built once.
# usage: tools.sh                Kubernetes' control plane, etcd, kwok, helm, kubeconform: helm/tools
#        tools.sh node           kubelet, kube-proxy, of the same version
#        tools.sh coredns        CoreDNS
#        tools.sh netpol         what enforces NetworkPolicies on a node
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
gotool=$here/../../platform/setup/gotool
version=$(sed -n 's#^\tk8s.io/kubernetes v\([0-9.]*\).*#\1#p' "$here/../tools/go.mod")
IFS=. read -r major minor _ <<<"$version"
package=k8s.io/component-base/version
flags="-s -w -X $package.gitVersion=v$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
case ${1:-} in
node) export TOOLS="k8s.io/kubernetes/cmd/kubelet k8s.io/kubernetes/cmd/kube-proxy" ;;
coredns | netpol) TOOLS=. exec "$gotool" "$here/$1" -ldflags "-s -w" ;;
'') ;;
*) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
esac
exec "$gotool" "$here/../tools" -ldflags "$flags -X $package.gitTreeState=clean"
