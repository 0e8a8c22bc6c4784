"""Become a service's process: what the process manager runs, at first and after every crash.

usage: python -m oal_local.launch STATE_FOLDER SERVICE
"""
import ctypes
import os
import signal
import sys

from oal_local import settings
from oal_local.errors import PlatformError
from oal_local.paths import State
from oal_local.services import SERVICES, fingerprint

PR_SET_PDEATHSIG = 1


def main(folder: str, name: str) -> None:
    # If the manager itself is killed, no service may outlive it: nobody would be left to stop it.
    manager = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != manager:
        sys.exit("launch: the process manager ended")
    state = State(folder)
    chosen = settings.load(state)
    if chosen is None:
        sys.exit(f"launch: {state.dir} holds no instance")
    service = SERVICES[name]
    (state.run / f"{name}.pid").write_text(str(os.getpid()))  # stays the same through exec
    try:
        (state.run / f"{name}.files").write_text(fingerprint(service, state, chosen))
        service.prepare(state, chosen)
        command = service.command(state, chosen)
    except (PlatformError, OSError) as error:
        sys.exit(f"{name}: {error}")
    sys.stdout.flush()
    os.chdir(state.run)  # a core or heap dump lands inside the state folder
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
