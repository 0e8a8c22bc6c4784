"""Who may do what with Kafka, tried with real clients."""
import socket
import ssl
import subprocess

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from oal_local import pki
from oal_local.paths import State, python

AP_TOPICS = ("ap.samples.v1", "ap.packets.v1", "ap.events.v1")
OTHER_TOPICS = ("training.items.v1", "ap.bundles.v1", "dead.letters.v1", "platform.events.v1", "ap.neighbours.v1")


def write(options: dict, topic: str):
    """None when the broker took a record, the KafkaError otherwise."""
    results = []
    producer = Producer({**options, "message.timeout.ms": 20000, "log_level": 0})
    producer.produce(topic, b"x,0", key=b"k", on_delivery=lambda error, message: results.append((error, message)))
    producer.flush(30)
    return results[0][0]


def read(options: dict, topic: str, group: str = "viewer-test"):
    """The record at the beginning of partition 0, None when it is empty; raises when it is refused."""
    consumer = Consumer(
        {**options, "group.id": group, "enable.partition.eof": True, "enable.auto.commit": False, "log_level": 0})
    try:
        if error := consumer.list_topics(topic, timeout=20).topics[topic].error:
            raise KafkaException(error)  # may not even know of it
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(20)
            assert message is not None, "neither a record nor a refusal"
            if message.error() is None:
                return message
            if message.error().code() == KafkaError._PARTITION_EOF:
                return None
            if message.error().code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                continue  # this is about the topic
            raise KafkaException(message.error())
    finally:
        consumer.close()


@pytest.fixture(scope="module")
def ap(platform):
    return platform.kafka.ap("ap-0001")


@pytest.mark.parametrize("topic", AP_TOPICS[1:])
def test_an_ap_writes_its_topics_idempotently(ap, topic):
    assert write({**ap, "enable.idempotence": True}, topic) is None


@pytest.mark.parametrize("topic", OTHER_TOPICS)
def test_an_ap_cannot_write_other_topics(ap, topic):
    assert write(ap, topic).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("topic", AP_TOPICS + OTHER_TOPICS)
def test_an_ap_cannot_read(ap, topic):
    with pytest.raises(KafkaException) as refusal:
        read(ap, topic)
    assert refusal.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_an_ap_cannot_create_topics(ap):
    admin = AdminClient({**ap, "log_level": 0})
    created = admin.create_topics([NewTopic("mine", 1, 1)])["mine"]
    with pytest.raises(KafkaException) as refusal:
        created.result(30)
    assert refusal.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_an_ap_named_like_the_admin_is_still_an_ap(platform, tmp_path):
    """The role is in the OU, which only the CA gives: a CN of `admin` must not make an administrator."""
    code = (
        "import sys; from pathlib import Path; from oal_pki.authority import Authority; from oal_pki.folder import"
        " Folder\na = Authority(Folder(sys.argv[1])); a.folder = Folder(sys.argv[2]); a.folder.make(); a.issue('admin',"
        " 'ap')"
    )
    subprocess.run(
        [python(), "-c", code, str(platform.state.dir), str(tmp_path)], check=True,
        env={"PYTHONPATH": ":".join(map(str, pki.SOURCES))})
    options = {**platform.kafka.client("viewer"), "ssl.certificate.location": str(tmp_path / "pki" / "admin.crt"),
               "ssl.key.location": str(tmp_path / "pki" / "admin.key")}
    assert write(options, "ap.events.v1") is None
    assert write(options, "training.items.v1").code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_whoever_no_rule_names_may_nothing(platform):
    """A person's certificate, and a service's that topics.yaml does not name: what all APs may is not theirs."""
    pki.run(platform.state, "service", "prober")
    for name in ("operator", "prober"):
        assert write(platform.kafka.client(name), "ap.events.v1").code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_an_ap_cannot_join_a_consumer_group(ap):
    consumer = Consumer({**ap, "group.id": "oal-stream-jobs", "log_level": 0})
    consumer.subscribe(["ap.samples.v1"])
    message = consumer.poll(20)
    consumer.close()
    assert message.error().code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_stream_jobs_cannot_write_what_aps_write(platform):
    assert write(platform.kafka.client("stream-jobs"), "ap.samples.v1").code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_the_push_service_reads_what_stream_jobs_write_of_neighbours(platform):
    assert write(platform.kafka.client("stream-jobs"), "ap.neighbours.v1") is None
    read(platform.kafka.client("deploy"), "ap.neighbours.v1", "deploy-test")
    assert write(platform.kafka.client("deploy"), "ap.neighbours.v1").code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_trainer_reads_items_and_nothing_else(platform):
    trainer = platform.kafka.client("trainer")
    read(trainer, "training.items.v1", "trainer-test")
    with pytest.raises(KafkaException):
        read(trainer, "ap.samples.v1", "trainer-test")
    assert write(trainer, "training.items.v1").code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_viewer_reads_everything_and_writes_nothing(platform):
    viewer = platform.kafka.client("viewer")
    for topic in AP_TOPICS + OTHER_TOPICS:
        read(viewer, topic)
        assert write(viewer, topic).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def handshake(platform, port: int, context: ssl.SSLContext) -> bytes:
    """What the server says after the handshake. In TLS 1.3 a refusal of the client comes as an alert to the first read.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain, \
            context.wrap_socket(plain, server_hostname="127.0.0.1") as channel:
        return channel.recv(1)


@pytest.mark.parametrize("listener", ["kafka", "kafka_controller"])
def test_no_certificate_no_connection(platform, listener):
    context = ssl.create_default_context(cafile=str(platform.state.pki / "ca.crt"))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(platform, platform.settings.ports[listener], context)


@pytest.mark.parametrize("listener", ["kafka", "kafka_controller"])
def test_a_certificate_of_another_ca_is_refused(platform, listener, tmp_path):
    other = State(tmp_path)
    pki.init(other)
    pki.access_points(other, "ap-0001")
    context = ssl.create_default_context(cafile=str(platform.state.pki / "ca.crt"))
    context.load_cert_chain(other.pki / "ap-0001.crt", other.pki / "ap-0001.key")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(platform, platform.settings.ports[listener], context)


@pytest.mark.parametrize("listener", ["kafka", "kafka_controller"])
def test_plain_text_gets_no_answer(platform, listener):
    with socket.create_connection(("127.0.0.1", platform.settings.ports[listener]), timeout=10) as plain:
        # The request of an ApiVersions call, as a client without TLS would send it.
        plain.sendall(bytes.fromhex("00000013001200000000000100056f74686572"))
        plain.settimeout(10)
        try:
            answer = plain.recv(64)
        except ConnectionError:
            answer = b""
    assert answer[:1] in (b"", b"\x15")  # closed, or a TLS alert


def test_records_carry_the_brokers_time(platform, ap):
    """Retention follows these times; an AP with a wrong clock must not have its records deleted, or kept for ever."""
    results = []
    producer = Producer({**ap, "message.timeout.ms": 20000})
    producer.produce("ap.events.v1", b"old", partition=0, timestamp=1000, on_delivery=lambda e, m: results.append(
        (e, m.offset())))
    producer.flush(30)
    error, offset = results[0]
    assert error is None
    consumer = Consumer({**platform.kafka.client("viewer"), "group.id": "viewer-time"})
    consumer.assign([TopicPartition("ap.events.v1", 0, offset)])
    kind, milliseconds = consumer.poll(20).timestamp()
    consumer.close()
    assert kind == 2 and milliseconds > 1_700_000_000_000
