"""What a node whose pods run needs of this machine. As a program: says what is lacking, and ends with 1 if anything is.

Each need is tried, not looked up: a container that tests run in often shows what it does not allow.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import cgroups

CONTROLLERS = {"cpu", "cpuset", "memory", "pids"}
MEMORY_GB, DISK_GB = 6, 6  # pods and Kubernetes take 5 GB at most; images and volumes of a run 4
#: Rules that kube-proxy and the CNI write, one of each kind of match and target.
RULES = ("-m comment --comment x -m addrtype --dst-type LOCAL -j RETURN",
         "-m statistic --mode random --probability 0.5 -j RETURN", "-j MARK --set-xmark 0x4000/0x4000",
         "-p tcp -m tcp --dport 1 -j DNAT --to-destination 127.0.0.1:1")


def run(*command: str) -> str:
    """What a command complained of; "" when it did not."""
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        return f"there is no {command[0]}"
    said = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else said[-1] if said else f"{command[0]} ended with {done.returncode}"


def groups() -> str:
    trees = cgroups.trees()
    found = set()
    for tree in trees:
        if (listed := tree / "cgroup.controllers").exists():
            found |= set(listed.read_text().split())
        else:
            found |= set(tree.name.split(","))
    if lacking := CONTROLLERS - found:
        return f"cgroup controllers {', '.join(sorted(lacking))} are not under {cgroups.ROOT}"
    name = f"oal-try-{uuid.uuid4().hex[:8]}"
    try:
        cgroups.make(f"/{name}")
        cgroups.end(f"/{name}")
    except OSError as error:
        return f"no cgroup can be made under {cgroups.ROOT}: {error}"
    return ""


def network() -> str:
    """A namespace with a bridge, a pair of devices and the firewall rules of Services."""
    name = f"oal-try-{uuid.uuid4().hex[:8]}"
    inside = ("nsenter", f"--net=/run/netns/{name}")
    try:
        for command in (("ip", "netns", "add", name),
                        ("ip", "-n", name, "link", "add", "name", "try-b", "type", "bridge"),
                        ("ip", "-n", name, "link", "add", "name", "try-v", "type", "veth", "peer",
                         "name", "try-w"),
                        (*inside, "sysctl", "-qw", "net.ipv4.ip_forward=1"),
                        *((*inside, "iptables", "-w", "-t", "nat", "-A", "PREROUTING", *rule.split())
                          for rule in RULES),
                        (*inside, "iptables", "-w", "-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE"),
                        (*inside, "iptables", "-w", "-t", "mangle", "-A", "POSTROUTING", "-d", "10.0.0.0/8", "-j",
                         "NFQUEUE", "--queue-num", "100"),
                        (*inside, "iptables", "-w", "-A", "FORWARD", "-m", "conntrack", "--ctstate", "INVALID", "-j",
                         "DROP")):
            if said := run(*command):
                return f"{' '.join(command)}: {said}"
    finally:
        run("ip", "netns", "delete", name)
    return ""


def overlay(folder: Path) -> str:
    """Containers' file systems are layers in the cache."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        for part in ("lower", "upper", "work", "all"):
            Path(made, part).mkdir()
        said = run("unshare", "--mount", "mount", "-t", "overlay", "overlay", "-o",
                   f"lowerdir={made}/lower,upperdir={made}/upper,workdir={made}/work", f"{made}/all")
        return f"no overlay can be mounted in {folder}: {said}" if said else ""


def memory() -> str:
    words = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(words["MemAvailable"].split()[0]) / 1e6
    return "" if free >= MEMORY_GB else f"{free:.1f} GB of memory are free, it takes {MEMORY_GB}"


def disk(folder: Path) -> str:
    free = shutil.disk_usage(folder).free / 1e9
    return "" if free >= DISK_GB else f"{free:.1f} GB are free in {folder}, it takes {DISK_GB}"


def lacking(folder: Path) -> list[str]:
    """Sentences. `folder` is where images and volumes will be."""
    if os.geteuid() != 0:
        return ["only root may make network namespaces, mounts and cgroups"]
    folder.mkdir(parents=True, exist_ok=True)
    return [said for said in (groups(), network(), overlay(folder), memory(), disk(folder)) if said]


if __name__ == "__main__":
    from real_cluster import cache

    if found := lacking(cache()):
        sys.exit("\n".join(["real-cluster: this machine cannot run a node whose pods run:", *found]))
