"""An access point outside of the cluster: the exporter's image in the namespace that knows the node by its name alone.

It enrols as docs/access-point.md says, and replays a capture.
"""
import json
import os
import uuid

import images
import spaces
from installation import Installation

HOST = "oal.example.org"  # examples/small.yaml's
USER = 10001
CONFIG = """config exporter 'main'
	option ap_id '{name}'
	option site '{site}'
	option status_socket '/tmp/ap.sock'
config replay
	option file '/usr/share/oal/captures/{capture}.oalcap'
config kafka
	option brokers '{host}:30950'
	option ca '/var/lib/oal/ca.pem'
	option certificate '/var/lib/oal/ap.pem'
	option key '/var/lib/oal/ap.key'
	option mac_keys '/var/lib/oal/mac-keys'
	option buffer_kb '65536'
config agent
	option url 'https://{host}:30443'
	option ca '/var/lib/oal/ca.pem'
	option cert '/var/lib/oal/ap.pem'
	option key '/var/lib/oal/ap.key'
	option trusted_keys '/var/lib/oal/trusted-keys'
	option state_dir '/var/lib/oal'
config rwnd
	option mode 'shadow'
	option kill_file '/var/lib/oal/kill'
"""


class AccessPoint:
    def __init__(self, oal: Installation, name: str, site: str = "hall-1", capture: str = "congested"):
        self.oal, self.name, self.site = oal, name, site
        self.node = oal.cluster.nodes[0]
        self.folder = oal.folder / name
        self.folder.mkdir(exist_ok=True)
        (self.folder / "config").write_text(CONFIG.format(name=name, site=site, capture=capture, host=HOST))
        (oal.folder / "hosts").write_text(f"127.0.0.1 localhost\n{spaces.address(0)} {HOST}\n")
        self._own()

    def _own(self) -> None:
        for path in (self.folder, *self.folder.iterdir()):
            os.chown(path, USER, USER)

    def _container(self, name: str, options: tuple[str, ...], *command: str, timeout: float = 60) -> str:
        oal, cluster = self.oal, self.oal.cluster
        image = f"docker.io/library/{images.tags()['OAL_EXPORTER_IMAGE']}"
        return self.node.ctr(
            "run", *options, "--with-ns", f"network:/run/netns/{cluster.prefix}-out", "--read-only", "--cgroup",
            f"{cluster.outer}/{name}", "--mount", f"type=bind,src={self.folder},dst=/var/lib/oal,options=rbind:rw",
            "--mount", f"type=bind,src={oal.folder / 'hosts'},dst=/etc/hosts,options=rbind:ro", "--mount",
            "type=tmpfs,dst=/tmp,options=mode=1777", image, name, *command, timeout=timeout)

    def enrol(self) -> None:
        """The ticket by the command of `helm get notes`, in by standard input."""
        (self.folder / "ticket").write_text(
            self.oal.k("exec", "oal-push-0", "--", "oal-deploy", "ctl", "ticket", self.name, "--site", self.site,
                       "--config", "/etc/oal/push/deploy.yaml"))
        self._own()
        self._container(f"{self.name}-enrol-{uuid.uuid4().hex[:6]}", ("--rm",), "sh", "-c",
                        "ap-exporter enrol -c /var/lib/oal/config - </var/lib/oal/ticket")
        (self.folder / "ticket").unlink()

    def start(self) -> None:
        self._container(self.name, ("-d", "--null-io"), "ap-exporter", "run", "-c", "/var/lib/oal/config")

    def runs(self) -> bool:
        return "RUNNING" in self._state()

    def status(self) -> dict:
        return json.loads(
            self.node.ctr("task", "exec", "--exec-id", uuid.uuid4().hex[:8], self.name, "ap-exporter", "status", "-c",
                          "/var/lib/oal/config"))

    def stop(self) -> None:
        """In order: what is in its buffer goes out first."""
        self.node.ctr("task", "kill", "-s", "TERM", self.name, check=False)
        self.oal.cluster.wait(f"{self.name} ends", lambda: not self.runs(), 60)
        self.node.ctr("task", "rm", "-f", self.name, check=False)
        self.node.ctr("container", "rm", self.name, check=False)

    def _state(self) -> str:
        return next((line for line in self.node.ctr("task", "ls", check=False).splitlines()
                     if line.split()[0] == self.name), "")

