"""Run commands in the guest. A command that fails stops the scenario with what it said."""
import subprocess


def run(command: str, ns: str | None = None, check: bool = True) -> str:
    """Run a command line (no shell) in a network namespace (None: the guest's own) and return its output."""
    words = command.split()
    if ns:
        words = ["ip", "netns", "exec", ns] + words
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if check and done.returncode:
        raise SystemExit(f"guest: '{' '.join(words)}' failed ({done.returncode}): {(done.stderr or done.stdout).strip()}")
    return done.stdout


def start(words: list[str], log: str, ns: str | None = None) -> subprocess.Popen:
    """Start a process in the background with its output in a file."""
    if ns:
        words = ["ip", "netns", "exec", ns] + words
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=open(log, "wb"), stderr=subprocess.STDOUT)


def write(path: str, text: str) -> None:
    with open(path, "w") as f:
        f.write(text)
