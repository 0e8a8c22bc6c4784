#!/usr/bin/env python3
"""The Debian package of oal-host: its files, what dpkg makes of it in a root of its own, its unit, its configuration.

usage: tests/host_package.py [BINARY OUT [NAME…]]: the package is built from BINARY, oal-host, as OUT. Needs root.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
if len(sys.argv) < 3:
    sys.argv[1:] = [str(HERE / "build/host/oal-host"), str(HERE / "build/host/oal-host.deb")]
PACKAGE = Path(sys.argv[2]).resolve()

from outside import BINARY, Folder, run_here  # noqa: E402
from sentences import Skip  # noqa: E402

FILES = {
    "./etc/oal-host/oal-host.conf": "-rw-r--r--",
    "./lib/systemd/system/oal-host.service": "-rw-r--r--",
    "./usr/bin/oal-host": "-rwxr-xr-x",
    "./usr/lib/sysusers.d/oal-host.conf": "-rw-r--r--",
    "./usr/share/doc/oal-host/changelog.gz": "-rw-r--r--",
    "./usr/share/doc/oal-host/copyright": "-rw-r--r--",
    "./usr/share/doc/oal-host/examples/enforce.conf": "-rw-r--r--",
    "./usr/share/man/man8/oal-host.8.gz": "-rw-r--r--",
}


def ran(*command, **more) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)
    assert done.returncode == 0, (command, done.stdout[-1000:], done.stderr[-2000:])
    return done.stdout


def build(out: Path) -> Path:
    ran(HERE / "host/build_deb", BINARY, out, cwd=HERE, env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"})
    return out


def t_files():
    """the package has exactly the files that it should, root's, none writable by others; equal builds are equal"""
    with Folder() as folder:
        build(PACKAGE)
        listed = [line.split() for line in ran("dpkg-deb", "-c", PACKAGE).splitlines()]
        files = {f[5]: f[0] for f in listed if not f[0].startswith("d")}
        assert files == FILES, files
        assert all(f[1] == "root/root" and f[0][8] != "w" for f in listed), listed
        again = build(folder / "again.deb")
        assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(PACKAGE.read_bytes()).digest()
        control = ran("dpkg-deb", "-f", PACKAGE)
        assert "librdkafka1" in control and "libcurl4" in control and "libc6" in control, control


def t_installs():
    """dpkg unpacks it into a root of its own, and knows its configuration as one that is the administrator's"""
    with Folder() as folder:
        package = build(folder / "oal-host.deb")
        root = folder / "root"
        for name in ("info", "updates", "triggers"):
            (root / "var/lib/dpkg" / name).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        ran("dpkg", f"--root={root}", "--log=/dev/null", "--force-depends", "--force-script-chrootless", "--unpack",
            package)
        assert (root / "usr/bin/oal-host").stat().st_mode & 0o7777 == 0o755
        assert "/etc/oal-host/oal-host.conf" in ran("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W",
                                                    "-f=${Conffiles} ${db:Status-Status}", "oal-host")
        # The program that was installed judges the configuration that was installed.
        config = (root / "etc/oal-host/oal-host.conf.dpkg-new").read_text()  # put in its place when it is configured
        for off in ("kafka", "agent", "qdisc", "congestion"):
            assert f"config {off}" in config
        (root / "var/lib/oal-host").mkdir(parents=True)
        (folder / "config").write_text(config.replace("'oal-host'", "''").replace("/var/lib/", f"{root}/var/lib/"))
        assert ": good; host " in ran(root / "usr/bin/oal-host", "check-config", "-c", folder / "config")
        everything = (folder / "config").read_text().replace("enabled '0'", "enabled '1'")
        (folder / "all").write_text(everything.replace("'eth0'", "'lo'"))
        done = subprocess.run([root / "usr/bin/oal-host", "check-config", "-c", folder / "all"], capture_output=True,
                              text=True)
        assert "unknown" not in done.stderr and "ca.pem" in done.stderr, done.stderr  # all that it lacks is enrolment


def t_unit():
    """systemd takes the unit, which gives the program no capability and lets it write nowhere but in its own folders"""
    if not shutil.which("systemd-analyze"):
        raise Skip("there is no systemd-analyze")
    with Folder() as folder:
        text = (HERE / "host/oal-host.service").read_text().replace("/usr/bin/oal-host", str(BINARY))
        unit = folder / "oal-host.service"
        unit.write_text(text)
        more = folder / "oal-host.service.d"
        more.mkdir()
        shutil.copy(HERE / "host/enforce.conf", more)
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
        said = [line for line in done.stderr.splitlines() if "oal-host.service" in line]
        assert done.returncode == 0 and not said, done.stderr
        assert "\nCapabilityBoundingSet=\n" in text and "\nProtectSystem=strict\n" in text
        assert "\nUser=oal-host\n" in text and "\nRestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK\n" in text


def t_scripts():
    """the package's scripts are what dpkg's shell takes"""
    for name in ("postinst", "prerm", "postrm"):
        ran("dash", "-n", HERE / "host" / name)


if __name__ == "__main__":
    sys.exit(run_here(globals()))
