"""What a run must be able to say about its data before its model may be registered."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path

from oal_training.errors import TrainingError

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("scikit-learn", "xgboost-cpu", "numpy", "scipy", "pandas", "mlflow", "pyarrow")
TAG = "oal."
DIRTY = "-dirty"  # files differ from the revision: nobody can say which code it was


def git_revision() -> str:
    """Revision of the code, `-dirty` when files differ from it; OAL_GIT_REVISION where there is no checkout; "" when
    nobody knows.
    """
    if given := os.environ.get("OAL_GIT_REVISION"):
        return given
    try:
        revision = subprocess.run(
            ["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=20
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no", "."],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
    return revision + (DIRTY if changed else "")


def environment() -> dict[str, str]:
    """Versions of Python and of the packages that decide what a model is, and a hash over the lock file."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    lock = ROOT / "requirements.txt"
    if lock.is_file():
        found["requirements.txt"] = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    return found


@dataclass(frozen=True)
class Lineage:
    """query: SQL with its parameters, or the name of the file; data_sha256: of the file, or of the rows that the query
    gave; from_us, to_us: instants of the first and the last item, µs; feature_hash: hex, first 8 bytes of the program's
    hash.
    """

    query: str = ""
    data_sha256: str = ""
    from_us: int = 0
    to_us: int = 0
    rows: int = 0
    schema_revision: int = 0
    feature_hash: str = ""
    git_revision: str = field(default_factory=git_revision)
    environment: dict[str, str] = field(default_factory=environment)

    @classmethod
    def of(cls, source: dict) -> Lineage:
        """From `Items.source`."""
        query = source.get("query") or source.get("file") or ""
        if source.get("query_parameters"):
            query += "  -- " + json.dumps(source["query_parameters"], sort_keys=True)
        return cls(
            query=query,
            data_sha256=source.get("data_sha256") or source.get("file_sha256") or "",
            from_us=source.get("from_us") or 0,
            to_us=source.get("to_us") or 0,
            rows=source.get("rows") or 0,
            schema_revision=source.get("schema_revision") or 0,
            feature_hash=source.get("feature_hash") or "",
        )

    def missing(self) -> list[str]:
        """Names of what is not known."""
        absent = [name for name, value in asdict(self).items() if not value]
        if self.feature_hash and not re.fullmatch(r"[0-9a-f]{16}", self.feature_hash):
            absent.append("feature_hash")
        if self.data_sha256 and not re.fullmatch(r"[0-9a-f]{64}", self.data_sha256):
            absent.append("data_sha256")
        if self.git_revision.endswith(DIRTY):
            absent.append("git_revision")
        return absent

    def require(self) -> None:
        """TrainingError that names what is missing. Registration calls this; nothing registers without."""
        if absent := self.missing():
            raise TrainingError(
                f"not registered: the run cannot name its {', '.join(absent)}. A version must be traceable to its data"
                " and its code; train from ClickHouse or from a file of `oal-train import-items`, in a git checkout"
                " whose files are committed (or with OAL_GIT_REVISION set)"
            )

    def tags(self) -> dict[str, str]:
        """As tags of an MLflow run."""
        return {
            TAG + name: json.dumps(value, sort_keys=True) if isinstance(value, dict) else str(value)
            for name, value in asdict(self).items()
        }
