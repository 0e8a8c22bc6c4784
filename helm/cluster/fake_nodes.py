"""A control plane on loopback with nodes that kwok plays: pods are scheduled, become ready and end; nothing runs in
them."""
import json
import subprocess
from pathlib import Path

from control_plane import HERE, ControlPlane, free_ports

# Built-in stages are gone from kwok; these are its own, from its module.
STAGES = ("node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
          "pod/fast/pod-complete.yaml", "pod/fast/pod-ready.yaml", "pod/fast/pod-delete.yaml",
          "volume/fast/pv-bind.yaml", "volume/fast/pv-delete.yaml", "volume/fast/pvc-delete.yaml",
          "volume/fast/pvc-provision.yaml")
NODES = 5
STORAGE_CLASS = {
    "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
    "metadata": {"name": "kwok-volume", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "kwok.x-k8s.io/volume", "volumeBindingMode": "Immediate"
}


def node(name: str) -> dict:
    size = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {
            "name": name, "labels": {
                "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{name[-1]}",
                "kubernetes.io/os": "linux"
            }
        }, "status": {"allocatable": size, "capacity": size}
    }


class FakeNodes(ControlPlane):
    def start(self) -> "FakeNodes":
        super().start()
        (port,) = free_ports(1)
        self._run("kwok", self.bin / "kwok", f"--kubeconfig={self.kubeconfig}", "--manage-all-nodes=true",
                  "--node-lease-duration-seconds=40", f"--server-address=127.0.0.1:{port}",
                  f"--config={self._stages()}")
        self.apply(STORAGE_CLASS, *(node(f"node-{i}") for i in range(NODES)))
        self.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=240s")
        return self

    def _stages(self) -> Path:
        module = json.loads(
            subprocess.run(["go", "mod", "download", "-json", "sigs.k8s.io/kwok"], cwd=HERE.parent / "tools",
                           check=True, stdout=subprocess.PIPE, text=True).stdout)["Dir"]
        target = self.folder / "stages.yaml"
        target.write_text("\n---\n".join((Path(module) / "kustomize" / "stage" / stage).read_text() for stage in STAGES)
                          + "\n---\n" + (HERE / "load-balancer.yaml").read_text())
        return target
