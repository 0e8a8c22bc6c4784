"""npm packages of a lock file, installed once in the cache."""
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

SCHEMA = Path(__file__).resolve().parent / "schema"
SETUP = Path(__file__).resolve().parents[3] / "platform" / "setup"


def install(folder: Path) -> Path:
    """A folder with node_modules as `folder`'s lock file says."""
    lock = (folder / "package-lock.json").read_bytes()
    made = Path(os.environ.get("XDG_CACHE_HOME")
                or Path.home() / ".cache") / "oal" / "npm" / hashlib.sha256(lock).hexdigest()[:16]
    if not (made / ".complete").exists():
        if not shutil.which("npm"):
            subprocess.run([SETUP / "apt", "nodejs", "npm"], check=True)
        made.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(folder / name, made)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=made, check=True,
                       timeout=300, stdout=subprocess.DEVNULL)
        (made / ".complete").touch()
    return made
