"""A node: containerd, kubelet, kube-proxy in a network namespace. Its images stay in the cache from run to run."""
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import spaces

PAUSE = "localhost/pause:1"
QUEUE = 100  # of netfilter, in each node's namespace
CONTAINERD = """version = 2
root = "{images}"
state = "{folder}/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
"""


@dataclass
class Node:
    number: int
    folder: Path
    images: Path
    space: str
    cgroup: str
    volumes: int = 16
    name: str = field(init=False)
    address: str = field(init=False)
    socket: Path = field(init=False)

    def __post_init__(self):
        self.name = f"real-{self.number}"
        self.address = spaces.address(self.number)
        self.socket = self.folder / "c.sock"

    @property
    def inside(self) -> tuple[str, ...]:
        return spaces.inside(self.space)

    def prepare(self, dns: str) -> None:
        for folder in (self.folder / "cni", self.images):
            folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "containerd.toml").write_text(
            CONTAINERD.format(images=self.images, folder=self.folder, socket=self.socket, pause=PAUSE))
        (self.folder / "cni" / "10-bridge.conflist").write_text(
            json.dumps({
                "cniVersion": "0.4.0", "name": "bridge", "plugins": [{
                    "type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": True,
                    "ipam": {
                        "type": "host-local", "dataDir": str(self.folder / "ipam"),
                        "ranges": [[{"subnet": spaces.pods(self.number)}]], "routes": [{"dst": "0.0.0.0/0"}]
                    }
                }, {"type": "portmap", "capabilities": {"portMappings": True}}]
            }))
        (self.folder / "resolv.conf").write_text(f"nameserver {dns}\n")
        (self.folder / "kubelet.json").write_text(
            json.dumps({
                "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": "0.0.0.0",
                "port": 10250, "readOnlyPort": 0, "healthzPort": 0, "failCgroupV1": False,
                "cgroupDriver": "cgroupfs", "cgroupRoot": self.cgroup, "enforceNodeAllocatable": [],
                "failSwapOn": False, "containerRuntimeEndpoint": f"unix://{self.socket}",
                # Only this test's namespaces reach it.
                "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
                "authorization": {"mode": "AlwaysAllow"}, "featureGates": {"KubeletInUserNamespace": True},
                # A kubelet removes what is not its own: the machine's folder would be all nodes'.
                "podLogsDir": str(self.folder / "logs"),
                "localStorageCapacityIsolation": False, "imageGCHighThresholdPercent": 100,
                "evictionHard": {"memory.available": "100Mi"}, "clusterDNS": [dns], "clusterDomain": "cluster.local",
                "resolvConf": str(self.folder / "resolv.conf")
            }))

    def containerd(self) -> tuple[str, ...]:
        return (*self.inside, "containerd", "-c", str(self.folder / "containerd.toml"))

    def kubelet(self, programs: Path, kubeconfig: Path) -> tuple[str, ...]:
        return (*self.inside, str(programs / "kubelet"), f"--config={self.folder / 'kubelet.json'}",
                f"--kubeconfig={kubeconfig}", f"--root-dir={self.folder / 'kubelet'}",
                f"--cert-dir={self.folder / 'kubelet-pki'}", f"--hostname-override={self.name}",
                f"--node-ip={self.address}", f"--node-labels=topology.kubernetes.io/zone=zone-{self.number}")

    def proxy(self, programs: Path, kubeconfig: Path) -> tuple[str, ...]:
        return (*self.inside, str(programs / "kube-proxy"), f"--kubeconfig={kubeconfig}",
                f"--hostname-override={self.name}", "--proxy-mode=iptables", "--cluster-cidr=10.244.0.0/16",
                # Limits of connections are the machine's, which a namespace may not set.
                "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0",
                "--conntrack-tcp-timeout-close-wait=0", "--nodeport-addresses=primary",
                "--healthz-bind-address=127.0.0.1:10256", "--metrics-bind-address=127.0.0.1:10249")

    def queue_packets(self) -> None:
        """The first packets of connections from and to this node's pods wait for the verdict of `enforcer`; while it
        does not run they are dropped. The node itself may reach its pods, as a kubelet must; what a pod sends to the
        node (DNS and API server are there) is not asked about. Bridged packets pass these rules too."""
        chain = (*self.inside, "iptables", "-w", "-t", "mangle", "-A", "POSTROUTING")
        own = spaces.pods(self.number)
        for rule in ("-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN", "-m addrtype --src-type LOCAL -j RETURN",
                     f"-d {own} -j NFQUEUE --queue-num {QUEUE}", f"-s {own} -j NFQUEUE --queue-num {QUEUE}"):
            spaces.run(*chain, *rule.split())

    def enforcer(self, programs: Path, kubeconfig: Path) -> tuple[str, ...]:
        """What judges queued packets by NetworkPolicies."""
        return (*self.inside, str(programs / "netpol"), f"--kubeconfig={kubeconfig}", f"--node={self.name}",
                f"--queue={QUEUE}")

    def ctr(self, *arguments: str, check: bool = True, stdin=subprocess.DEVNULL, timeout: float = 120) -> str:
        done = subprocess.run(["ctr", "-a", str(self.socket), "-n", "k8s.io", *arguments], stdin=stdin,
                              capture_output=True, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise RuntimeError(f"ctr {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def volume(self, number: int, nodes: list[str]) -> dict:
        """A local volume: kubelet gives those to a pod's fsGroup, hostPath ones it does not. All `nodes` have it: they
        are one machine."""
        path = self.folder / "volumes" / str(number)
        path.mkdir(parents=True, exist_ok=True)
        return {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"{self.name}-{number}"}, "spec": {
                "capacity": {"storage": "400Gi"}, "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "local", "local": {"path": str(path)},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]}]}}
            }
        }
