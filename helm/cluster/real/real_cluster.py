"""A Kubernetes whose pods run: the control plane of control_plane.py, nodes of node.py, CoreDNS, volumes, images.
NetworkPolicies are enforced where there is one node: on several, tests ask pods from another node's address.

One at a time on a machine; what a killed run left is removed at the next start. With OAL_CLUSTER_KEEP=1 it stays up at
the end, and the next such run takes it as it stands, with what is installed: for work on single tests. `make
-C helm real-cluster-stop` ends one that was kept.
"""
import fcntl
import hashlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import cgroups
import images
import spaces
from control_plane import ControlPlane, tools
from node import Node

STORAGE_CLASS = {
    "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
    "metadata": {"name": "local", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"
}
COREFILE = """.:53 {{
  hosts {names} {{
    fallthrough
  }}
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {kubeconfig} c
    pods insecure
    ttl 5
  }}
  errors
}}
"""


KEEP = os.environ.get("OAL_CLUSTER_KEEP") == "1"


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oal" / "cluster"


class RealCluster(ControlPlane):
    api_for_pods = True
    #: Name → address: what pods can look up besides the cluster's own names, as in the DNS of a network around it.
    names: dict[str, str] = {}

    def __init__(self, nodes: int = 1):
        folder = cache() / "state"
        self.prefix = "oal-k" + hashlib.sha256(str(folder).encode()).hexdigest()[:6]
        cache().mkdir(parents=True, exist_ok=True)
        self.lock = open(cache() / "lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"another test's cluster runs; its files are in {folder}") from None
        super().__init__(folder, spaces.address(0), spaces.inside(f"{self.prefix}-0"))
        # One group for the scheduler of a busy machine: of Kubernetes' own programs, each node's pods, access points.
        self.cgroup = f"/{self.prefix}"
        self.own, self.outer = f"{self.cgroup}/own", f"{self.cgroup}/outside"
        self.nodes = [
            Node(number, folder / f"n{number}", cache() / f"images-{number}", f"{self.prefix}-{number}",
                 f"{self.cgroup}/n{number}") for number in range(nodes)
        ]
        self.times: dict[str, float] = {}

    @property
    def outside(self) -> tuple[str, ...]:
        return spaces.inside(f"{self.prefix}-out")

    @property
    def kept(self) -> bool:
        """Whether an earlier run left it up, and this one is to use it."""
        return KEEP and (self.folder / "up").exists() and self.kubectl("get", "--raw", "/readyz", check=False) == "ok"

    def start(self) -> "RealCluster":
        if self.kept:
            return self
        begin = time.monotonic()
        images.build()
        self._took("images", begin)
        programs, dns, enforcer = tools("node"), tools("coredns"), tools("netpol")
        begin = time.monotonic()
        self.clean()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        spaces.make(self.prefix, len(self.nodes))
        cgroups.make(self.own)
        cgroups.make(self.outer)
        for node in self.nodes:
            cgroups.make(node.cgroup)
            node.folder.mkdir()
            node.prepare(self.address)
            self._run(f"containerd-{node.number}", *node.containerd(), plain=True)
        super().start()
        for node in self.nodes:
            self.wait("containerd answers", lambda n=node: n.socket.exists() and n.ctr("version", check=False))
        began = time.monotonic()
        for node in self.nodes:
            images.bring(node)
        self._took("images into the nodes", began)
        names = self.folder / "names"
        names.write_text("".join(f"{address} {name}\n" for name, address in self.names.items()))
        (self.folder / "Corefile").write_text(COREFILE.format(kubeconfig=self.kubeconfig, names=names))
        self._run("coredns", dns / "coredns", "-conf", self.folder / "Corefile")
        for node in self.nodes:
            self._run(f"kubelet-{node.number}", *node.kubelet(programs, self.kubeconfig), plain=True)
        for node in self.nodes:
            self.wait(f"{node.name} is ready", lambda n=node: self.kubectl(
                "wait", "--for=condition=Ready", f"node/{n.name}", "--timeout=1s", check=False), 180)
            if len(self.nodes) == 1:
                node.queue_packets()
                self._run(f"netpol-{node.number}", *node.enforcer(enforcer, self.kubeconfig), plain=True)
            self._run(f"kube-proxy-{node.number}", *node.proxy(programs, self.kubeconfig), plain=True)
        self.apply(STORAGE_CLASS, *(self._volume(node, i) for node in self.nodes for i in range(node.volumes)))
        (self.folder / "up").touch()
        self._took("cluster up", begin)
        return self

    def _took(self, what: str, begin: float) -> None:
        self.times[what] = time.monotonic() - begin

    def _run(self, name: str, *command, plain: bool = False) -> None:
        """`plain`: the command says itself in which namespace it runs."""
        saved = self.inside
        if plain:
            self.inside = ()
        try:
            super()._run(name, *command)
        finally:
            self.inside = saved
        cgroups.enter(self.own, self.processes[-1][1].pid)

    def fresh_volumes(self) -> None:
        """Volumes whose claims are gone are made anew, empty, as a provisioner would."""
        released = [v["metadata"]["name"] for v in self.get("pv") if v["status"].get("phase") == "Released"]
        for node in self.nodes:
            for number in range(node.volumes):
                if f"{node.name}-{number}" in released:
                    self.kubectl("delete", "pv", f"{node.name}-{number}")
                    shutil.rmtree(node.folder / "volumes" / str(number))
                    self.apply(self._volume(node, number))

    def _volume(self, node: Node, number: int) -> dict:
        return node.volume(number, [n.name for n in self.nodes])

    def stop(self) -> None:
        if KEEP:
            self.lock.close()
            return
        for node in self.nodes:
            if node.socket.exists():
                self._stop_pods(node)
        super().stop()
        self.clean()
        self.lock.close()

    def _stop_pods(self, node: Node) -> None:
        """Kubelet first: it would start them again."""
        if (file := self.folder / f"kubelet-{node.number}.pid").exists():
            self._end(int(file.read_text()))
        self._end_pods()
        for kind in ("tasks", "containers"):
            for one in node.ctr(kind, "ls", "-q", check=False).split():
                node.ctr(kind, "rm", *(("-f",) if kind == "tasks" else ()), one, check=False)

    def clean(self) -> None:
        """What a run left, this one or a killed one: processes, mounts, cgroups, namespaces."""
        for file in self.folder.glob("*.pid"):
            self._end(int(file.read_text()))
            file.unlink()
        self._end_pods()
        cgroups.end(self.cgroup)
        for pid in self._ours(b"containerd-shim"):
            os.kill(pid, signal.SIGKILL)
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for mount in sorted((m for m in mounts if m.startswith(str(self.folder) + "/")), reverse=True):
            spaces.run("umount", "-l", mount, check=False)
        spaces.remove(self.prefix)

    def _end_pods(self) -> None:
        """Pods' processes and the network namespaces that CNI gave them."""
        groups = (*(node.cgroup for node in self.nodes), self.outer)
        namespaces = {spaces.of(pid) for group in groups for pid in cgroups.pids(group)}
        for group in groups:
            cgroups.end(group)
        spaces.remove_cni(namespaces)

    def _ours(self, program: bytes) -> list[int]:
        """Processes of that program, with a file of this cluster among their arguments."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if program in words[0] and any(str(self.folder).encode() in word for word in words[1:]):
                found.append(int(folder.name))
        return found

    def _end(self, pid: int) -> None:
        """Only if it is one of ours: a process id may be another's by now."""
        if pid not in self._ours(b""):
            return
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 20
        while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)


if __name__ == "__main__":
    if sys.argv[1:] != ["stop"]:
        sys.exit("usage: real_cluster.py stop")
    KEEP = False
    RealCluster(2).stop()
