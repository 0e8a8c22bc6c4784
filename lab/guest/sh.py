"""Run commands in the guest. A command that fails stops the scenario with what it said."""
import subprocess

from .namespace import inside


def run(command: str, ns: str | None = None, check: bool = True) -> str:
    """Run a command line (no shell) in a network namespace (None: the guest's own) and return its output."""
    words = command.split()
    if ns:
        words = ["ip", "netns", "exec", ns] + words
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if check and done.returncode:
        raise SystemExit(
            f"guest: '{' '.join(words)}' failed ({done.returncode}): {(done.stderr or done.stdout).strip()}")
    return done.stdout


def batch(program: str, lines: list[str], ns: str | None = None) -> None:
    """Several commands of `ip` or `tc` by one process: starting one is what costs most in the guest."""
    with inside(ns):
        done = subprocess.run([program, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(
            f"guest: {program} -batch in {ns or 'the AP'} failed ({done.returncode}):"
            f" {(done.stderr or done.stdout).strip()}\n"
            + "\n".join(lines)
        )


def start(words: list[str], log: str, ns: str | None = None) -> subprocess.Popen:
    """Start a process in the background with its output in a file."""
    if ns:
        words = ["ip", "netns", "exec", ns] + words
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=open(log, "wb"), stderr=subprocess.STDOUT)


def write(path: str, text: str) -> None:
    with open(path, "w") as f:
        f.write(text)
