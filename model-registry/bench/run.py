"""Figures of the model registry, with the real MLflow server and Kafka broker; writes
../../build/bench/registry-*.json.

usage: bench/run.py [PROMOTIONS]
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [
    str(HERE.parent / "tests"),
    str(HERE.parent / "src"),
    str(ROOT / "schema" / "src"),
    str(ROOT / "platform" / "local" / "src"),
]


def write(name: str, value: float, unit: str, note: str) -> None:
    folder = ROOT / "build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    figure = {
        "name": name,
        "value": round(value, 4),
        "unit": unit,
        "command": "make -C model-registry bench",
        "note": note,
    }
    (folder / f"{name}.json").write_text(json.dumps(figure, indent=1) + "\n")
    print(f"{name:36} {value:10.3f} {unit:6} {note}", flush=True)


def rss_mib(pid: int) -> float:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def start(server, name: str, note: str) -> None:
    began = time.monotonic()
    server.start()
    server.wait_ready(240)
    write(name, time.monotonic() - began, "s", note)


def promotions(count: int, owner, topics, versions) -> None:
    from topics import released

    taken = []
    for i in range(count):
        version = versions[i % len(versions)]
        began = time.monotonic()
        owner.alias("champion", version)
        released(topics, "champion", version)
        taken.append(time.monotonic() - began)
    write(
        "registry-alias-to-release-p50",
        statistics.median(taken),
        "s",
        f"alias set in MLflow to release read from Kafka, {count} promotions",
    )
    write(
        "registry-alias-to-release-max",
        max(taken),
        "s",
        "the slowest of them; the first of each version also fetches and compiles it",
    )


def packaging(folder: Path) -> None:
    from oal_registry import compile, package, programs
    from oal_registry.models import CompiledModel
    from oal_schema import keys, policy
    from oal_schema.manifest import known
    from owner import items
    from sklearn.tree import DecisionTreeClassifier

    x, y = items(1, 4000)
    y = (x[:, :6].sum(axis=1) // 70_000) % 4
    model = DecisionTreeClassifier(max_leaf_nodes=128, random_state=0).fit(x, y)
    program, manifest = programs.of_name("congestion"), known()["rwnd-fair"]
    key = keys.make(folder / "bench.pem")
    taken = []
    for _ in range(20):
        began = time.process_time()
        tree = compile.tree(model, program.feature_hash)
        compiled = CompiledModel(manifest.role("class"), 1, "", program, tree)
        made = package.build(
            manifest,
            [compiled],
            target="fleet",
            serial=1,
            rollback_to=[],
            key=key,
            policy=policy.make("default", 1, policy.SHADOW),
        )
        taken.append(time.process_time() - began)
    write(
        "registry-package-cpu",
        statistics.median(taken) * 1000,
        "ms",
        f"compile, golden vectors and signature of {made.nodes} nodes, {len(made.signed)} bytes",
    )


def main(count: int) -> None:
    from oal_local.platform import Platform
    from oal_schema import keys
    from owner import Owner
    from processes import MlflowServer, RegistryService
    from topics import Topics

    with tempfile.TemporaryDirectory(prefix="oal-registry-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        packaging(folder)
        server = MlflowServer(folder / "mlflow")
        registry = None
        try:
            start(server, "mlflow-first-start", "from nothing: databases, users, keys")
            server.stop()
            start(server, "mlflow-start", "again")
            with Platform(folder / "platform", ports="auto", only=["kafka"]) as platform:
                keys.make(folder / "signing.pem")
                registry = RegistryService(
                    folder / "registry",
                    server,
                    platform.kafka.client("model-registry"),
                    folder / "signing.pem",
                    ["true"],
                    poll_s=2.0,
                )
                start(registry, "registry-start", "until promotions are followed")
                owner = Owner(server.url, "owner", server.passwords["owner"])
                versions = [owner.register(seed) for seed in (1, 2, 3)]
                promotions(count, owner, Topics(platform.kafka.client("viewer")), versions)
                write("mlflow-rss", rss_mib(server.pid), "MiB", "one process")
                write("registry-rss", rss_mib(registry.pid), "MiB", "after the promotions")
                registry.stop()
        finally:
            for process in (registry, server):
                if process is not None:
                    process.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
