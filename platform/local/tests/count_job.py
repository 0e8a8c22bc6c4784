"""Builds job/src/CountJob.java into one jar, once for each version of its sources; kept in the cache."""
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from oal_local import distribution
from oal_local.paths import cache_dir

SOURCES = Path(__file__).parent / "job"
MAIN_CLASS = "CountJob"


def jar() -> Path:
    content = b"".join(path.read_bytes() for path in sorted(SOURCES.rglob("*")) if path.is_file())
    target = cache_dir() / "local-tests" / f"count-job-{hashlib.sha256(content).hexdigest()[:12]}.jar"
    if target.exists():
        return target
    print("tests: building the Flink test job (once)", file=sys.stderr, flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        libraries, classes = Path(folder) / "lib", Path(folder) / "classes"
        subprocess.run([
            "mvn", "-B", "-q", "-Dstyle.color=never", "-f",
            str(SOURCES / "pom.xml"), distribution.DEPENDENCY_PLUGIN, f"-DoutputDirectory={libraries}",
            "-DincludeScope=runtime"
        ], check=True, stdout=sys.stderr)
        subprocess.run(["javac", "-d", str(classes), "-cp", f"{distribution.class_path('flink')}:{libraries}/*",
                        str(SOURCES / "src" / f"{MAIN_CLASS}.java")], check=True)
        merged = Path(folder) / "merged.jar"
        names = set()
        with zipfile.ZipFile(merged, "w", zipfile.ZIP_DEFLATED) as out:
            for path in classes.rglob("*.class"):
                out.write(path, path.relative_to(classes))
            for library in sorted(libraries.glob("*.jar")):
                with zipfile.ZipFile(library) as archive:
                    for name in archive.namelist():
                        if not name.endswith("/") and name not in names and not name.startswith(
                            ("META-INF/MANIFEST", "META-INF/versions/")):
                            names.add(name)
                            out.writestr(name, archive.read(name))
        merged.rename(target)
    return target


if __name__ == "__main__":
    print(jar())
