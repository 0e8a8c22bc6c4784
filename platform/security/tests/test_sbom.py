"""The bill of materials names what the lock files name."""
import json
import re
import subprocess
import sys

from conftest import REPO, ROOT


def test_every_locked_package_is_in_a_document(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "sbom" / "make.py", tmp_path], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    documents = {file.stem: json.loads(file.read_text()) for file in tmp_path.glob("*.json")}
    assert {d["bomFormat"] for d in documents.values()} == {"CycloneDX"}
    urls = {folder: {c["purl"] for c in d["components"]} for folder, d in documents.items()}
    # Counted here in another way than there: the lines of the lock files.
    for folder in ("platform/local", "platform/security", "training", "schema", "model-registry"):
        lines = [line for line in (REPO / folder / "requirements.txt").read_text().splitlines() if "==" in line]
        assert len([u for u in urls[folder.replace("/", "-")] if u.startswith("pkg:pypi/")]) == len(lines), folder
    required = re.findall(r"^\s*(?:require )?(\S+/\S+) (v\d\S*)", (REPO / "deploy" / "go.mod").read_text(), re.M)
    assert len(required) > 5 and all(f"pkg:golang/{path}@{version}".lower() in {u.lower() for u in urls["deploy"]}
                                     for path, version in required)
    pom = (REPO / "stream-jobs" / "pom.xml").read_text()
    assert all(
        any(f"/{artifact}@" in u for u in urls["stream-jobs"])
        for artifact in re.findall(r"<dependency>.*?<artifactId>([^<]+)", pom, re.S))
