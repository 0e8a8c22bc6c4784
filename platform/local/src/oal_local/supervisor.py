"""The process manager: one Supervisor per instance, spoken to over a Unix socket that only its owner may open."""
import hashlib
import http.client
import os
import socket
import subprocess
import tempfile
import time
import xmlrpc.client
from pathlib import Path

from oal_local.errors import PlatformError
from oal_local.paths import SOURCE, State, python
from oal_local.services import SERVICES

SOCKET_PATH_LIMIT = 100  # of 108 in sockaddr_un; Supervisor appends its pid while it binds


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(90)  # stopping a service may take its stop_seconds
        self.sock.connect(self.path)


class _Transport(xmlrpc.client.Transport):
    def __init__(self, path: str):
        super().__init__()
        self.path = path

    def make_connection(self, host):
        return _Connection(self.path)  # never kept: a connection of an earlier Supervisor would be stale


class Supervisor:
    def __init__(self, state: State):
        self.state = state
        self.config = state.dir / "supervisord.conf"
        self.pid_file = state.run / "supervisord.pid"
        self.socket = self._socket_path()

    def _socket_path(self) -> Path:
        path = self.state.run / "supervisor.sock"
        if len(str(path)) <= SOCKET_PATH_LIMIT:
            return path
        folder = Path(tempfile.gettempdir()) / f"oal-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o077:
            raise PlatformError(f"{folder} must belong to you with mode 0700: the process manager's socket goes there")
        return folder / f"{hashlib.sha256(str(self.state.dir).encode()).hexdigest()[:16]}.sock"

    def call(self, method: str, *arguments):
        proxy = xmlrpc.client.ServerProxy("http://localhost/RPC2", transport=_Transport(str(self.socket)))
        function = proxy
        for part in method.split("."):
            function = getattr(function, part)
        try:
            return function(*arguments)
        except xmlrpc.client.Fault as fault:
            raise PlatformError(f"the process manager refused {method}{arguments}: {fault.faultString}; "
                                f"see {self.state.logs / 'supervisord.log'}") from None

    def running(self) -> bool:
        try:
            return self.call("supervisor.getState")["statename"] == "RUNNING"
        except (OSError, http.client.HTTPException):
            return False

    def start(self) -> None:
        if self.running():
            return
        self.config.write_text(self._configuration())
        command = [python(), "-m", "supervisor.supervisord", "-c", str(self.config)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.state.run,
                              env=dict(os.environ, PYTHONPATH=str(SOURCE)))
        deadline = time.monotonic() + 20
        while not self.running():
            if done.returncode != 0 or time.monotonic() > deadline:
                raise PlatformError(
                    f"the process manager did not start: `{' '.join(command)}` said\n{done.stdout[-2000:]}")
            time.sleep(0.05)

    def _configuration(self) -> str:
        def safe(value) -> str:
            return str(value).replace("%", "%%")

        sections = [
            "[supervisord]",
            f"logfile={safe(self.state.logs / 'supervisord.log')}",
            "logfile_maxbytes=5MB",
            "logfile_backups=1",
            "loglevel=info",
            f"pidfile={safe(self.pid_file)}",
            f"childlogdir={safe(self.state.logs)}",
            *(["user=root"] if os.getuid() == 0 else []),
            "[unix_http_server]",
            f"file={safe(self.socket)}",
            "chmod=0700",
            "[rpcinterface:supervisor]",
            "supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface",
        ]
        for service in SERVICES.values():
            sections += [
                f"[program:{service.name}]",
                f"command={safe(python())} -m oal_local.launch {safe(self.state.dir)} {service.name}",
                f"priority={service.order}",
                "autostart=false",  # `up` starts each when what it needs is ready
                # Exit 0 is the end of a bounded job; everything else is a crash.
                "autorestart=unexpected", "exitcodes=0",
                "startsecs=2",
                # Supervisor waits one second longer after each failed start, and must not give up while nobody looks.
                "startretries=1000000",
                "stopsignal=TERM", f"stopwaitsecs={service.stop_seconds}", "stopasgroup=true", "killasgroup=true",
                "redirect_stderr=true", f"stdout_logfile={safe(self.state.log(service.name))}",
                "stdout_logfile_maxbytes=20MB", "stdout_logfile_backups=2",
            ]
        return "\n".join(sections) + "\n"

    def info(self) -> dict[str, dict]:
        """State and pid of each service, by name; empty when the manager is not running."""
        try:
            return {process["name"]: process for process in self.call("supervisor.getAllProcessInfo")}
        except (OSError, http.client.HTTPException):
            return {}

    def start_process(self, name: str) -> None:
        if self.info()[name]["statename"] not in ("STARTING", "RUNNING", "BACKOFF"):
            self.call("supervisor.startProcess", name, False)

    def stop_process(self, name: str) -> None:
        if self.info()[name]["statename"] not in ("STOPPED", "EXITED", "FATAL"):
            self.call("supervisor.stopProcess", name, True)

    def pid(self, name: str) -> int:
        """The pid of a service that is up."""
        pid = self.info().get(name, {}).get("pid", 0)
        if not pid:
            raise PlatformError(f"{name} has no process; see `oal-local status`")
        return pid

    def shutdown(self) -> None:
        """Stop every service in reverse order, then the manager; returns when it is gone."""
        try:
            pid = int(self.pid_file.read_text())
            self.call("supervisor.shutdown")
        except (OSError, ValueError, http.client.HTTPException):
            return
        deadline = time.monotonic() + sum(service.stop_seconds for service in SERVICES.values())
        while alive(pid, "supervisord"):
            if time.monotonic() > deadline:
                raise PlatformError(
                    f"the process manager (pid {pid}) did not end; see {self.state.logs / 'supervisord.log'}")
            time.sleep(0.05)


def alive(pid: int, mark: str) -> bool:
    """Is there a process with this pid and MARK in its command line? A pid alone may have been given to another."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return mark.encode() in command
