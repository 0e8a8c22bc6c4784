"""Somebody at a shell with a page: what they type is the page's own text."""
import subprocess
from pathlib import Path

#: Of make, which started this test: a person's shell has none of it.
MAKES = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "GNUMAKEFLAGS")


class Newcomer:
    """`inside`: words before the shell, that put it on a machine. `home` is theirs, and holds nothing yet; they begin
    in `folder`. They stop at an error, and stay in the folder that a command went to."""

    def __init__(self, home: Path, folder: Path, environment: dict[str, str], inside: tuple[str, ...] = ()):
        self.environment = {name: value for name, value in environment.items() if name not in MAKES}
        self.folder, self.inside = folder, inside
        self._where = home / ".where"

    def types(self, text: str, seconds: float = 1200) -> str:
        """What it printed."""
        # The folder is told at the end whatever the end is.
        shell = [*self.inside, "bash", "-euo", "pipefail", "-c", f"trap 'pwd >{self._where}' EXIT\n{text}"]
        done = subprocess.run(shell, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, f"{text}\n{done.stdout[-1500:]}{done.stderr[-3000:]}"
        self.folder = Path(self._where.read_text().removesuffix("\n"))
        return done.stdout
