#!/usr/bin/env python3
"""The LuCI page: carried out by node with a status of the real daemon and stand-ins for LuCI's modules. What it asks of
ubus is what the exporter has, and what its rights allow.

usage: tests/luci.py [BINARY COUNT_MALLOC_SO [NAME…]], as tests/outside.py.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from outside import BINARY, Daemon, Folder, run_here, until

TESTS = Path(__file__).parent
APP = TESTS.parent / "openwrt/luci/luci-app-ap-exporter"
VIEW = APP / "htdocs/luci-static/resources/view/ap-exporter/status.js"
ACL = json.loads((APP / "root/usr/share/rpcd/acl.d/luci-app-ap-exporter.json").read_text())
MENU = json.loads((APP / "root/usr/share/luci/menu.d/luci-app-ap-exporter.json").read_text())
LO = "@exporter\nconfig qdisc\n\toption interface lo\n"


def methods() -> set[str]:
    """What the ubus object has."""
    return set(json.loads(subprocess.check_output([str(BINARY), "rpcd", "list"])))


def page(status: str, killed: bool = False) -> dict:
    """What the page shows, and asks."""
    done = subprocess.run(["node", TESTS / "luci.js", VIEW, status, json.dumps(killed)], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def t_rights():
    """menu, rights and view fit together: the view is where the menu says, with the rights that it names, and these
    are of methods that there are; only kill is a right to write"""
    (item,) = MENU.values()
    assert VIEW.is_relative_to(APP / "htdocs/luci-static/resources/view") and VIEW.as_posix().endswith(
        f"/view/{item['action']['path']}.js"
    )
    assert item["depends"]["acl"] == list(ACL)
    (rights,) = ACL.values()
    read, write = (set(rights[kind]["ubus"]["ap-exporter"]) for kind in ("read", "write"))
    assert read | write == methods() and write == {"kill"}
    declared = set(re.findall(r"rpc\.declare\(\{ object: '([^']+)', method: '([^']+)'", VIEW.read_text()))
    assert declared and declared <= {("ap-exporter", name) for name in read | write}, declared


def t_screen():
    """of a running exporter: its samplers, what they cost, its rows; the button stops control and lets it go on"""
    with Folder() as folder, Daemon(folder, LO) as daemon:
        until(lambda: daemon.status()["table_rows"]["health"] > 0, "rows")
        (folder / "status").write_text(json.dumps(daemon.status()))
        assert daemon.stop() == 0
        shown = page(folder / "status")
        assert "ap-test" in shown["before"] and "kernel | " in shown["before"], shown["before"]
        assert re.search(r"^health \| \d+$", shown["before"], re.M) and "No model" in shown["before"]
        assert "Stop control" in shown["before"] and "Let control go on" in shown["after"], shown
        assert ["ap-exporter", "kill", True] in shown["asked"] and shown["polled"] == [5]
        assert {tuple(asked[:2]) for asked in shown["asked"]} == {("ap-exporter", "status"), ("ap-exporter", "kill")}
        assert "undefined" not in shown["before"] + shown["after"] and "NaN" not in shown["before"]
        shown = page(folder / "status", killed=True)
        assert "Let control go on" in shown["before"] and "Stop control" in shown["after"]


def t_models_and_taps():
    """taps, policies, mode and alarms are shown; what the exporter does not say is a dash, not 0"""
    with Folder() as folder:
        (folder / "status").write_text(json.dumps({
            "ap_id": "ap-1", "alarms": ["control acts on nothing"], "table_rows": {},
            "taps": [{"interface": "phy0-ap0", "tap": "bpf", "attached": True, "packets": 12}],
            "agent": {"aps": [{"ap_id": "ap-1", "policies": {"rwnd-fair": {"bundle": "ab" * 32, "version": 7}}}]},
            "control": {"mode": "shadow", "ceiling": "enforce", "killed": False, "clamps": 3, "backend": "bpf",
                        "data_path": {"ready": False, "acks_clamped": 41}},
        }))
        shown = page(folder / "status")["before"]
        for line in ("control acts on nothing", "phy0-ap0 | bpf | yes | 12 | – | –",
                     "ap-1 | rwnd-fair | 7 | abababababab",
                     "shadow | enforce | no | 3 | 41 | bpf (not ready)", "– | – | – | –"):
            assert line in shown.splitlines(), (line, shown)


def t_not_running():
    """without an exporter the page says so, and has no button"""
    shown = page("none")
    assert "not running" in shown["before"] and shown["before"] == shown["after"]


if __name__ == "__main__":
    sys.exit(run_here(globals()))
