"""The way out of the guest when it streams: vec0 to the host's TAP, and the loopback addresses of broker and push
service forwarded over it.
"""
from .sh import run, start


def connect(plan: dict) -> None:
    """Bring vec0 up and forward each port from the guest's loopback to the host's end; TLS passes untouched."""
    if not plan["live"]:
        return
    run(f"ip addr add {plan['live']['guest']}/30 dev vec0")
    run("ip link set vec0 up")
    for port in plan["live"]["ports"]:
        start(["socat", f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr", f"TCP:{plan['live']['host']}:{port}"],
              f"/run/lab/socat{port}.log")


def sinks(plan: dict, host: str) -> list[dict]:
    """The exporter's sections for Kafka and for the agent, with the host's files as the guest sees them."""
    if not plan["live"]:
        return []
    kafka = plan["live"]["kafka"]
    files = {
        key: host + kafka[key] for key in ("ca", "certificate", "key", "trusted_keys", "mac_keys") if kafka.get(key)
    }
    agent = [{
        "kind": "agent", "url": kafka["push_url"], "ca": files["ca"], "cert": files["certificate"], "key": files["key"],
        "trusted_keys": files["trusted_keys"], "state_dir": "/run/lab"
    }] if kafka.get("push_url") else []
    return [*agent, {"kind": "kafka", "brokers": kafka["brokers"],
             **{key: files[key] for key in ("ca", "certificate", "key", "mac_keys") if key in files},
             **({} if kafka.get("ca") else {"plaintext": 1})}]
