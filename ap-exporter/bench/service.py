"""The push service of the tests, for benches of the daemon with its agent."""
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def push_service(folder: Path, *what: str, ns: str | None = None) -> tuple[subprocess.Popen, str]:
    """tests/push_service.py for the AP ap-test, in a network namespace or here, and the section of the configuration
    that uses it; it ends with its input."""
    venv = subprocess.run(
        ["bash", TOP / "platform" / "setup" / "venv", TOP / "schema" / "requirements.txt"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    enter = ["ip", "netns", "exec", ns] if ns else []
    service = subprocess.Popen(
        [*enter, f"{venv}/bin/python", TOP / "ap-exporter" / "tests" / "push_service.py", folder, "ap-test", *what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    port = service.stdout.readline().strip()
    return service, (
        f"config agent\n option url https://127.0.0.1:{port}\n option ca {folder}/push-ca.pem\n option cert "
        f"{folder}/ap-test.pem\n"
        f" option key {folder}/ap-test.key\n option trusted_keys {folder}/trusted\n option state_dir "
        f"{folder}\n option wait_s 60\n"
    )
