"""The chart's broker takes a renewed certificate up while it runs: lines of its start script, with a real broker."""
import hashlib
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time

import pytest
from conftest import ROOT
from manifests import find


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    sys.path.insert(0, str(ROOT / "platform/local/src"))
    from oal_local.platform import Platform
    with Platform(tmp_path_factory.mktemp("kafka") / "state", ports="auto", only=["kafka"], migrate=False) as running:
        yield running


def shown(platform, port: int) -> str:
    """Digest of the certificate that a listener shows now."""
    from oal_local import kafka
    context = kafka.tls(platform.state, "admin")
    context.check_hostname = False
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
        with context.wrap_socket(plain) as channel:
            return hashlib.sha256(channel.getpeercert(True)).hexdigest()


def written(platform) -> str:
    """The same of the file's."""
    text = (platform.state.pki / "broker.crt").read_text()
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(text[:text.index("-----END")] + ssl.PEM_FOOTER)).hexdigest()


def script(chart, platform, folder, every_s: str) -> str:
    """The part of start.sh that watches the certificate, with this broker's places."""
    from oal_local import distribution
    text = find(chart.objects(), "ConfigMap", "oal-kafka")["data"]["start.sh"]
    watch = text[text.index("watch_certificate() {"):text.index("watch_certificate &")]
    program = folder / "bin" / "kafka-configs.sh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/bash\nexec java ${{KAFKA_HEAP_OPTS:-}} -cp "{distribution.class_path("kafka")}" '
                       'kafka.admin.ConfigCommand "$@"\n')
    program.chmod(0o755)
    for place, here in (("/tmp/", f"{folder}/"), ("/run/secrets/oal/pki", str(platform.state.pki)),
                        ("/opt/kafka/bin", str(program.parent)), ("sleep 60", f"sleep {every_s}")):
        assert place in watch, place
        watch = watch.replace(place, here)
    watch, count = re.subn(r'"\$HOSTNAME\.[^"]*"', f'"{platform.kafka.bootstrap}"', watch)
    assert count
    return watch.replace("$((number + 1))", "1") + "watch_certificate\n"


def test_a_renewed_certificate_is_shown_without_a_restart(chart, platform, tmp_path):
    port, process = int(platform.kafka.bootstrap.split(":")[1]), platform.pid("kafka")
    assert shown(platform, port) == written(platform)
    watch = subprocess.Popen(["bash", "-euo", "pipefail", "-c", script(chart, platform, tmp_path, "0.2")],
                             stdout=open(tmp_path / "log", "wb"), stderr=subprocess.STDOUT, start_new_session=True)
    try:
        for _ in range(2):  # the second time nothing is said that was not said before but the file's content
            old = shown(platform, port)
            for name in ("broker.crt", "broker.key", "broker.pem"):
                (platform.state.pki / name).unlink()
            subprocess.run([ROOT / "platform/security/oal-ca", "init", platform.state.pki.parent], check=True,
                           capture_output=True)
            deadline = time.monotonic() + 120
            while shown(platform, port) != written(platform):
                assert time.monotonic() < deadline and watch.poll() is None, (tmp_path / "log").read_text()[-3000:]
                time.sleep(0.2)
            assert written(platform) != old
        assert platform.pid("kafka") == process, "the broker was started again"
    finally:
        os.killpg(watch.pid, signal.SIGTERM)
        watch.wait(20)
