"""Network namespaces: one a node, on one network, and one outside of the cluster, where access points are.

The outside is on the nodes' network and has no route to pods or Services: what it reaches, it reaches by a node's port.
"""
import os
import subprocess
from pathlib import Path

NETWORK = "10.200.0"       # /24, of nodes and the outside
OUTSIDE_ADDRESS = f"{NETWORK}.50"
NOWHERE = f"{NETWORK}.254"  # the default route's: what is sent there is lost, but addresses of Services need a route


def run(*command: str, check: bool = True) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout.strip()}")
    return done.stdout


def inside(space: str) -> tuple[str, ...]:
    """Words before a command. Not `ip netns exec`, which hides the cgroups."""
    return ("nsenter", f"--net=/run/netns/{space}")


def address(number: int) -> str:
    return f"{NETWORK}.{number + 1}"


def pods(number: int) -> str:
    return f"10.244.{number}.0/24"


def make(prefix: str, nodes: int) -> None:
    """Namespaces PREFIX-0, PREFIX-1, … and PREFIX-out; the bridge that joins them is in the first."""
    first = f"{prefix}-0"
    run("ip", "netns", "add", first)
    run("ip", "-n", first, "link", "add", "nodes", "type", "bridge")
    run("ip", "-n", first, "addr", "add", f"{address(0)}/24", "dev", "nodes")
    run("ip", "-n", first, "link", "set", "nodes", "up")
    for number in range(1, nodes):
        run("ip", "netns", "add", f"{prefix}-{number}")
        _join(first, f"{prefix}-{number}", "nodes", address(number))
    run("ip", "netns", "add", f"{prefix}-out")
    _join(first, f"{prefix}-out", "ap", OUTSIDE_ADDRESS)
    for number in range(nodes):
        space = f"{prefix}-{number}"
        run("ip", "-n", space, "link", "set", "lo", "up")
        run("ip", "-n", space, "route", "add", "default", "via", NOWHERE, "dev", "nodes")
        run(*inside(space), "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for other in range(nodes):
            if other != number:
                run("ip", "-n", space, "route", "add", pods(other), "via", address(other))
    run("ip", "-n", f"{prefix}-out", "link", "set", "lo", "up")


def _join(first: str, space: str, device: str, own: str) -> None:
    """`device` of `space` at the bridge of `first`."""
    port = f"p{own.rsplit('.', 1)[1]}"
    run("ip", "link", "add", device, "netns", space, "type", "veth", "peer", "name", port, "netns", first)
    run("ip", "-n", space, "addr", "add", f"{own}/24", "dev", device)
    run("ip", "-n", space, "link", "set", device, "up")
    run("ip", "-n", first, "link", "set", port, "master", "nodes")
    run("ip", "-n", first, "link", "set", port, "up")


def existing(prefix: str) -> list[str]:
    return [name for line in run("ip", "netns", "list").splitlines() if (name := line.split()[0]).startswith(
        f"{prefix}-")]


def of(pid: int) -> int:
    """The network namespace of a process, 0 when it has ended."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except FileNotFoundError:
        return 0


def remove_cni(namespaces: set[int]) -> None:
    """Those of `namespaces` that are pods', which nobody else removes when a pod was killed."""
    for file in Path("/run/netns").glob("cni-*"):
        if file.stat().st_ino in namespaces:
            run("ip", "netns", "delete", file.name)


def remove(prefix: str) -> None:
    for space in existing(prefix):
        run("ip", "netns", "delete", space)
