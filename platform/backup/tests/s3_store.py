"""A real S3 server on loopback: versitygw, over a folder."""
import os
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[3]


class Store:
    """`url` and the keys; `bucket` is there, and its objects are the files below `folder`."""

    def __init__(self, folder: Path, bucket: str):
        tools = subprocess.run([ROOT / "platform/setup/gotool", ROOT / "platform/backup/tools"], check=True,
                               stdout=subprocess.PIPE, text=True).stdout.strip()
        self.bucket, self.folder = bucket, folder / "store" / bucket
        self.folder.mkdir(parents=True)
        self.access, self.secret = "oal-" + secrets.token_hex(4), secrets.token_hex(20)
        self.access_file, self.secret_file = folder / "access-key", folder / "secret-key"
        self.access_file.write_text(self.access)
        self.secret_file.write_text(self.secret)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        # Some file systems have no extended attributes: what S3 knows of an object lies beside it.
        beside = folder / "beside"
        beside.mkdir()
        self.log = folder / "store.log"
        self.process = subprocess.Popen(
            [f"{tools}/versitygw", "--port", f"127.0.0.1:{port}", "posix", "--sidecar", beside, self.folder.parent],
            env=os.environ | {"ROOT_ACCESS_KEY": self.access, "ROOT_SECRET_KEY": self.secret},
            stdout=open(self.log, "wb"), stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        while not self._answers():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()[-2000:]
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(self.url, timeout=2)
        except urllib.error.HTTPError:
            return True  # it wants a signature
        except OSError:
            return False
        return True

    def objects(self, prefix: str) -> list[str]:
        return [str(path.relative_to(self.folder)) for path in (self.folder / prefix).rglob("*") if path.is_file()]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
