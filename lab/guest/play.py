"""A guest's main program that plays steps one after another and leaves what it saw in /run/out/NAME.json."""
import contextlib
import json
import subprocess
import sys
import time
import traceback

from .sh import run, write

OUT, HOST = "/run/out", "/run/host"
LOG_TAIL = 2000  # characters of each log that are shown where a step fails
POLL_S = 0.02


def wait(true, what: str, seconds: float = 60):
    """Its value, once it is something."""
    end = time.monotonic() + seconds
    while not (value := true()):
        if time.monotonic() > end:
            raise SystemExit(f"guest: after {seconds} s there is no {what}")
        time.sleep(POLL_S)
    return value


def status(binary: str, socket: str, process: subprocess.Popen | None = None) -> dict:
    """What an exporter says of itself; nothing while it cannot. That its process has ended is a fault."""
    done = subprocess.run([binary, "status", "-s", socket], capture_output=True, text=True)
    if process and process.poll() is not None:
        raise SystemExit(f"guest: an exporter ended with {process.returncode}")
    return json.loads(done.stdout) if done.returncode == 0 and done.stdout else {}


def main(name: str, play, steps, logs: tuple[str, ...] = ()) -> int:
    """`play` makes, of the plan, what each step gets; its `facts` are what is left. A step that fails is the last."""
    with open(sys.argv[1]) as f:
        it = play(json.load(f))
    run("mount -t tmpfs lab /run/lab")
    it.facts["steps"] = []
    for step in steps:
        print(f"{name}: {step.__name__}", flush=True)
        try:
            step(it)
        except (Exception, SystemExit):
            it.facts["error"] = f"{step.__name__}: {traceback.format_exc()}"
            for log in logs:
                with contextlib.suppress(OSError), open(f"{OUT}/{log}") as f:
                    it.facts["error"] += f.read()[-LOG_TAIL:]
            break
        it.facts["steps"].append(step.__name__)
    it.facts["kernel log"] = run("dmesg")
    write(f"{OUT}/{name}.json", json.dumps(it.facts))
    return 0
