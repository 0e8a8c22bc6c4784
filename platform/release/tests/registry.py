"""A registry of one's own in the engine's network, out of go-containerregistry."""
import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

from docker_engine import ROOT, run

PORT = 5055


def program() -> Path:
    folder = run(ROOT / "platform/setup/gotool", ROOT / "platform/release/tools", timeout=1200).stdout.split()[-1]
    return Path(folder) / "registry"


@contextmanager
def serving(engine):
    """Its address with a slash, while it answers."""
    served = subprocess.Popen([ROOT / "platform/images/engine", "exec", program(), "-port", str(PORT)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True)
    try:
        engine.inside("curl", "-sSf", "--retry", "60", "--retry-connrefused", "--retry-delay", "1",
                      f"http://127.0.0.1:{PORT}/v2/", timeout=90)
        yield f"127.0.0.1:{PORT}/oal/"
    finally:
        os.killpg(served.pid, signal.SIGTERM)  # the program and the shell that entered the namespace
        served.wait(20)
