"""The Kafka broker: one KRaft node, mutual TLS only."""
import base64
import socket
import ssl
import struct
import subprocess
import uuid

from oal_local import classdata, distribution, jolokia, pki
from oal_local.errors import PlatformError
from oal_local.paths import KAFKA, State, python
from oal_local.settings import Settings
from oal_local.template import fill

NAME = "kafka"
# The broker copies bytes; the optimising compiler would cost more CPU here than it saves.
C1_ONLY = ("-XX:TieredStopAtLevel=1",)


def bootstrap(settings: Settings) -> str:
    return f"127.0.0.1:{settings.ports['kafka']}"


def render(state: State, settings: Settings) -> None:
    (state.kafka / "server.properties").write_text(fill(
        KAFKA / "server.properties", port=settings.ports["kafka"], controller_port=settings.ports["kafka_controller"],
        data=state.kafka / "data", pki=state.pki))


def _java(settings: Settings, *arguments: str) -> list[str]:
    log4j = KAFKA / "log4j2.properties"
    return ["java", f"-Dlog4j2.configurationFile={log4j}", f"-Dlog4j.configurationFile={log4j}", *arguments]


def prepare(state: State, settings: Settings) -> None:
    """Format the log folder, once. An interrupted format leaves no meta.properties and is done again."""
    if (state.kafka / "data" / "meta.properties").exists():
        return
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    command = _java(settings, *C1_ONLY, *classdata.options("kafka-format"), "-cp", distribution.class_path("kafka"),
                    "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(state.kafka / "server.properties"))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise PlatformError(f"formatting Kafka's log folder {state.kafka / 'data'} failed:\n{done.stdout[-2000:]}")


def command(state: State, settings: Settings) -> list[str]:
    return _java(settings, "-Xms128m", f"-Xmx{settings.kafka_heap_mib}m", "-XX:+UseSerialGC", *C1_ONLY,
                 *classdata.options("kafka"), *jolokia.options(state, NAME), "-cp", distribution.class_path("kafka"),
                 f"-Dkafka.logs.dir={state.logs}", "kafka.Kafka", str(state.kafka / "server.properties"))


def files(state: State, settings: Settings) -> list:
    return [state.kafka / "server.properties", jolokia.config_file(state, NAME), *pki.files(state, "broker")]


def tls(state: State, name: str) -> ssl.SSLContext:
    """A client's TLS context with the certificate of NAME."""
    context = ssl.create_default_context(cafile=str(state.pki / "ca.crt"))
    context.load_cert_chain(state.pki / f"{name}.crt", state.pki / f"{name}.key")
    return context


def ready(state: State, settings: Settings) -> bool:
    """True when the broker answers a request of an admin. It begins to answer only when it is unfenced and has its log.
    """
    # ApiVersions, version 0: api key 18, version 0, correlation id 1, client id "ready"
    request = struct.pack(">hhih5s", 18, 0, 1, 5, b"ready")
    try:
        with socket.create_connection(("127.0.0.1", settings.ports["kafka"]), timeout=2) as plain, \
                tls(state, "admin").wrap_socket(plain, server_hostname="127.0.0.1") as channel:
            channel.sendall(struct.pack(">i", len(request)) + request)
            answer = channel.recv(10)
    except OSError:
        return False
    return len(answer) == 10 and struct.unpack(">iih", answer)[1:] == (1, 0)


def apply_topics(state: State, settings: Settings) -> None:
    """Create or alter topics, ACLs and quotas as platform/kafka/topics.yaml says."""
    _apply(state, settings, "topics.py", str(settings.partitions))


def widen_quota(state: State, settings: Settings, ap_id: str, aps: int) -> None:
    """Let the AP of that name send what so many may."""
    _apply(state, settings, "quotas.py", ap_id, "--aps", str(aps))


def _apply(state: State, settings: Settings, program: str, *arguments: str) -> None:
    done = subprocess.run(
        [python(), str(KAFKA / program), str(KAFKA / "topics.yaml"), bootstrap(settings), str(state.pki), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise PlatformError(f"{program} with {KAFKA / 'topics.yaml'} failed:\n{done.stdout[-2000:]}")


def client(state: State, settings: Settings, name: str) -> dict:
    """librdkafka options of the principal whose certificate is NAME."""
    return {
        "bootstrap.servers": bootstrap(settings), "security.protocol": "ssl",
        "ssl.ca.location": str(state.pki / "ca.crt"), "ssl.certificate.location": str(state.pki / f"{name}.crt"),
        "ssl.key.location": str(state.pki / f"{name}.key")
    }


def java_client(state: State, settings: Settings, name: str) -> dict:
    """The same for Java clients."""
    return {"bootstrap.servers": bootstrap(settings), "security.protocol": "SSL", "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(state.pki / f"{name}.pem"), "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(state.pki / "ca.crt")}
