#!/usr/bin/env python3
"""The init script starts the daemon once something takes what it samples, and gives folders to the daemon's user and
nothing else to anybody: whoever the daemon has become, the next start hands over no folder of root's.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from sentences import Skip, Sum, run_tests, tests_of

INIT = Path(__file__).resolve().parents[1] / "files/ap-exporter.init"
USER = 65534
#: What rc.common and the configuration give the script.
SHELL = """
config_load() { :; }
config_get() {
	local default="$4" given
	given=$(echo "$OPTIONS" | sed -n "s/^$2\\.$3=//p")
	eval "$1=\${given:-$default}"
	case "$2.$3" in
	agent.state_dir) eval "$1=$STATE_DIR" ;;
	agent.cert) eval "$1=$CERT" ;;
	main.user) eval "$1=65534" ;;
	esac
}
extra_command() { :; }
logger() { shift 4; echo "$*"; }
config_get_bool() { case " $DISABLED " in *" $2 "*) eval "$1=0" ;; *) eval "$1=$4" ;; esac }
config_foreach() {
	local callback="$1" type="$2" section
	shift 2
	for section in $SECTIONS; do case $section in "$type":*) "$callback" "${section#*:}" "$@" ;; esac done
}
procd_open_instance() { echo started; }
procd_send_signal() { echo "signal $*"; }
stop() { echo stop; }
start() { echo start; }
for name in add_jail add_jail_mount add_jail_mount_rw; do eval "procd_$name() { echo \"$name \$*\"; }"; done
for name in set_param close_instance add_reload_trigger; do eval "procd_$name() { :; }"; done
. "$INIT"
HOME_DIR="$HOME_FOLDER"
OPENED_FILE="$HOME_FOLDER/opened"
UJAIL="${UJAIL_HERE:-/none}"
"""
CONFIG = INIT.with_suffix(".config")


class Machine:
    """A tree in which `home` is /etc/ap-exporter."""

    def __init__(self, root: Path):
        self.root, self.home = root, root / "ap-exporter"
        self.home.mkdir(mode=0o755)

    def start(self, cert: str = "identity/ap.pem", state: str = "bundles") -> str:
        """What the script says while it prepares a start."""
        return self.run("prepare_agent", cert, state)

    def run(self, function: str, cert: str = "identity/ap.pem", state: str = "bundles", config: str = "",
            ujail: str = "") -> str:
        """What the script says in one of its functions, under this configuration in UCI format."""
        sections = re.findall(r"^config (\w+) '(\w+)'\n((?:[\t#].*\n|\n)*)", config, re.M)
        env = {"PATH": os.environ["PATH"], "INIT": str(INIT), "HOME_FOLDER": str(self.home),
               "STATE_DIR": str(self.home / state), "CERT": str(self.home / cert),
               "SECTIONS": " ".join(f"{kind}:{name}" for kind, name, _ in sections),
               "UJAIL_HERE": ujail, "OPTIONS": "\n".join(
                   f"{name}.{option}={value}" for _, name, text in sections
                   for option, value in re.findall(r"\toption (\w+) '(.*)'", text)),
               "DISABLED": " ".join(name for _, name, text in sections if "\toption enabled '0'" in text)}
        done = subprocess.run(["sh", "-c", f"{SHELL}\n{function}"], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        return done.stdout

    def owner(self, path: str) -> int:
        return (self.root / path).lstat().st_uid


@contextmanager
def machine():
    """Below /run or /root, since whatever is below /tmp is anybody's to rename."""
    if os.geteuid():
        raise Skip("folders are given away by root")
    above = next((Path(p) for p in ("/run", "/root") if Path(p).is_dir() and not Path(p).is_symlink()), None)
    if above is None:
        raise Skip("no folder that only root writes")
    folder = Path(tempfile.mkdtemp(prefix="oal-init-", dir=above))
    folder.chmod(0o755)
    try:
        yield Machine(folder)
    finally:
        shutil.rmtree(folder)


def t_as_the_package_comes():
    """as the package comes nothing is started, and what to do is said; with a sink it is"""
    shipped = CONFIG.read_text()
    with machine() as m:
        said = m.run("start_service", config=shipped)
        assert "started\n" not in said.replace("not started", "") and "enable the section kafka" in said, said
        for sink in ("kafka", "capture"):
            chosen = re.sub(rf"(config \w+ '{sink}'\n\toption enabled) '0'", r"\1 '1'", shipped)
            assert chosen != shipped and m.run("start_service", config=chosen) == "started\n"


def t_first_start():
    """a first start makes the daemon's two folders; what is above them is root's"""
    with machine() as m:
        assert m.start() == ""
        assert [m.owner(p) for p in ("ap-exporter/identity", "ap-exporter/bundles")] == [USER, USER]
        assert m.owner("ap-exporter") == 0 and (m.home / "bundles").stat().st_mode & 0o777 == 0o700
        assert m.start() == "", "again, with everything there"


def t_a_link_in_place_of_a_folder():
    """a link in place of a folder is not followed, and said"""
    with machine() as m:
        (m.root / "victim").mkdir(mode=0o755)
        (m.home / "bundles").symlink_to(m.root / "victim")
        said = m.start()
        assert "bundles is not given" in said and m.owner("victim") == 0
        assert (m.root / "victim").stat().st_mode & 0o777 == 0o755


def t_what_was_given_away_before():
    """a folder that an earlier version gave to the daemon is root's again, and what was put into it stays harmless"""
    with machine() as m:
        (m.root / "victim").mkdir(mode=0o755)
        os.chown(m.home, USER, USER)
        (m.home / "identity").symlink_to(m.root / "victim")
        assert "identity is not given" in m.start()
        assert m.owner("ap-exporter") == m.owner("victim") == 0


def t_a_folder_that_others_can_move():
    """nothing is given away below a folder that somebody else may write"""
    with machine() as m:
        loose = m.home / "loose"
        loose.mkdir()
        loose.chmod(0o777)
        assert "loose/bundles is not given" in m.start(state="loose/bundles")
        assert not (loose / "bundles").exists()


def t_a_certificate_in_the_folder_itself():
    """a certificate right in /etc/ap-exporter does not give that folder away; what to do is said"""
    with machine() as m:
        said = m.start(cert="ap.pem")
        assert "cannot be renewed" in said and "identity/" in said and m.owner("ap-exporter") == 0


def t_reload():
    """a reload is a signal, and a restart where ports, taps or what control may do have changed"""
    shipped = re.sub(r"(config \w+ 'capture'\n\toption enabled) '0'", r"\1 '1'", CONFIG.read_text())
    with machine() as m:
        assert m.run("reload_service", config=shipped) == "stop\nstart\n", "it was not started before"
        assert m.run("start_service", config=shipped) == "started\n"
        signal = "signal ap-exporter * HUP\n"
        assert m.run("reload_service", config=shipped) == signal
        assert m.run("reload_service", config=shipped.replace("site ''", "site 'hall-1'")) == signal
        for old, new in (("mode 'shadow'", "mode 'enforce'"), ("tap 'auto'", "tap 'packet'"),
                         ("interface 'phy0-ap0'", "interface 'phy1-ap0'")):
            changed = shipped.replace(old, new)
            assert changed != shipped and m.run("reload_service", config=changed) == "stop\nstart\n", (old, new)
        assert m.run("reload_service", config=shipped) == signal


def t_jail():
    """where there is a jail, each folder that the configuration names is in it, what the daemon writes can be written,
    and nothing is there twice; a file does without"""
    shipped = re.sub(r"(config \w+ 'capture'\n\toption enabled) '0'", r"\1 '1'", CONFIG.read_text())
    with machine() as m:
        assert "add_jail" not in m.run("start_service", config=shipped)
        said = m.run("start_service", config=shipped, ujail="/bin/sh").splitlines()
        assert "add_jail ap-exporter log procfs sysfs" in said, said
        writes = [path for line in said for path in line.split()[1:] if line.startswith("add_jail_mount_rw ")]
        reads = [path for line in said for path in line.split()[1:] if line.startswith("add_jail_mount ")]
        assert {"/tmp", "/var/run", str(m.home / "bundles"), str(m.home / "identity")} <= set(writes), writes
        assert {"/etc/config", str(m.home), "/etc/passwd"} <= set(reads), reads
        assert len(writes + reads) == len(set(writes + reads)), said
        named = re.findall(r"\toption (\w+) '(/[^']+)'", shipped)
        for option, path in named:
            if option in ("state_dir", "cert"):
                path = path.replace("/etc/ap-exporter", str(m.home))  # of this machine
            folder = path if option in ("state_dir", "ovs_rundir") else path.rpartition("/")[0]
            assert folder in writes + reads, (option, path)
        assert len(named) > 10
        (m.home / "no-jail").touch()
        assert "add_jail" not in m.run("start_service", config=shipped, ujail="/bin/sh")


if __name__ == "__main__":
    total = Sum()
    run_tests(tests_of(globals()), 4, total)
    sys.exit(total.status())
