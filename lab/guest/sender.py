"""oal-sniffer inside the guest: sampling the server's TCP, comparing its clock with the AP's (one kernel here, measured
all the same).
"""
import signal
import subprocess

from .net import AP_HOST, address
from .sh import start

PORT = 4123


class Sender:
    """The reflector in the AP's namespace, the sniffer on the server. Output: NAME.sender.jsonl.gz; in a live run Kafka
    as well.
    """

    def __init__(self, plan: dict, ap: int, name: str, ap_id: str, ap_ns: str | None, server_ns: str, out: str,
                 host: str):
        reflector = f"{address(ap, AP_HOST)}:{PORT}"
        self.processes = [
            start(["python3", "-m", "sniffer", "reflect", "--listen", reflector], f"/run/lab/{name}.reflect.log", ap_ns)
        ]
        words = [
            "-m", "sniffer", "run", "--host", f"{ap_id}-server", "--netns", server_ns, "--rate-hz",
            str(plan["sniff_hz"]), "--reflector", reflector, "--output", f"{out}/{name}.sender.jsonl.gz"
        ]
        kafka = plan["live"] and plan["live"].get("sender")
        if kafka:
            words += [
                "--brokers", kafka["brokers"], *(w for key in ("ca", "certificate", "key") if kafka.get(key)
                                                 for w in (f"--{key}", host + kafka[key]))
            ]
        # streaming needs the environment of lab/requirements.txt
        python = host + plan["python"] if kafka else "python3"
        self.log = f"{out}/{name}.sender.log"
        self.processes.insert(0, start([python, *words], self.log))

    def end(self) -> int:
        """Stop; the sniffer's exit status. Its last line of the log is its own account."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        statuses = [wait(process) for process in self.processes]
        return statuses[0]


def wait(process: subprocess.Popen) -> int:
    try:
        return process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
