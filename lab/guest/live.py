"""The way out of the guest when it streams: vec0 to the host's TAP, and the broker's loopback address forwarded over it."""
from .sh import run, start


def connect(plan: dict) -> None:
    """Bring vec0 up and forward each broker port from the guest's loopback to the host's end; TLS passes untouched."""
    if not plan["live"]:
        return
    run(f"ip addr add {plan['live']['guest']}/30 dev vec0")
    run("ip link set vec0 up")
    for port in plan["live"]["ports"]:
        start(["socat", f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr", f"TCP:{plan['live']['host']}:{port}"], f"/run/lab/socat{port}.log")


def sinks(plan: dict, host: str) -> list[dict]:
    """The exporter's Kafka section, with the host's certificate files as the guest sees them."""
    if not plan["live"]:
        return []
    kafka = plan["live"]["kafka"]
    return [{"kind": "kafka", "brokers": kafka["brokers"],
             **{key: host + kafka[key] for key in ("ca", "certificate", "key") if kafka.get(key)},
             **({} if kafka.get("ca") else {"plaintext": 1})}]
