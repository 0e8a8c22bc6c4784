#!/usr/bin/env python3
"""Write oal/values.schema.json: the type of each key is that of its value in oal/values.yaml; what is narrower stands
here.

usage: schema.py [--check]
"""
import json
import sys
from pathlib import Path

import yaml

CHART = Path(__file__).resolve().parent / "oal"
QUANTITY = {"type": ["string", "integer"], "pattern": r"^[0-9.]+([kKMGTP]i?|m)?$"}
IMAGE = {
    "type": "string", "pattern": r"^[a-z0-9][a-z0-9._/:-]*(:[A-Za-z0-9._-]+|@sha256:[0-9a-f]{64})$",
    "description": "NAME:TAG or NAME@sha256:…"
}
NAME = {"type": "string", "pattern": "^$|^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"}
TEXTS = {"type": "array", "items": {"type": "string"}}
MAP = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
OBJECTS = {"type": "array", "items": {"type": "object"}}
PORTS = {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}}
RESOURCES = {
    "type": "object", "additionalProperties": False, "properties": {
        kind: {
            "type": "object", "additionalProperties": False,
            "properties": {"cpu": QUANTITY, "memory": QUANTITY, "ephemeral-storage": QUANTITY}
        } for kind in ("requests", "limits")
    }, "required": ["requests", "limits"]
}
# By the last key of the path, wherever it stands.
EVERYWHERE = {
    "resources": RESOURCES,
    "nodeSelector": MAP,
    "podAnnotations": {"type": "object", "additionalProperties": {"type": "string"}},
    "podLabels": {"type": "object", "additionalProperties": {"type": "string"}},
    "extraEnv": {
        "type": "array", "items": {
            "type": "object", "additionalProperties": False, "required": ["name"], "properties": {
                "name": {"type": "string"}, "value": {"type": "string"}, "valueFrom": {"type": "object"}
            }
        }
    },
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "externalTrafficPolicy": {"enum": ["", "Local", "Cluster"]},
    "parentRefs": OBJECTS,
    "tolerations": OBJECTS,
    "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
    "size": QUANTITY,
    "scratch": QUANTITY,
    "cpu": QUANTITY,
    "pullSecrets": TEXTS,
    "hosts": TEXTS,
    "heapMiB": {"type": "integer", "minimum": 256},
    "port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "nodePort": {"type": "integer", "minimum": 30000, "maximum": 32767},
}
PATHS = {
    "images.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "images.prefix": {"type": "string", "pattern": "^$|/$", "description": "ends in a slash"},
    **{f"images.{name}": IMAGE for name in ("kafka", "clickhouse", "postgres", "grafana", "oauth2Proxy")},
    "images.digests": {
        "type": "object", "additionalProperties": False, "properties": {
            f"oal-{name}": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
            for name in ("push", "learning", "stream-jobs", "setup", "telegraf", "exporter")
        }
    },
    "pki.mode": {"enum": ["generated", "certManager", "existing"]},
    "pki.certManager.issuer.kind": {"enum": ["Issuer", "ClusterIssuer"]},
    "networkPolicy.accessPoints": TEXTS,
    **{f"networkPolicy.{who}": OBJECTS for who in ("people", "queries", "monitoring")},
    "networkPolicy.dnsPorts": PORTS,
    "networkPolicy.apiPorts": PORTS,
    "oidc.scopes": TEXTS,
    "oidc.people": {"type": "object", "additionalProperties": {"enum": ["viewer", "owner", "admin"]}},
    "oidc.replicas": {"type": "integer", "minimum": 1},
    "s3.endpoint": {"type": "string", "pattern": "^$|^https?://[^/]+$", "description": "http(s)://HOST[:PORT]"},
    "flink.maxParallelism": {"type": "integer", "minimum": 0, "maximum": 32768},
    "kafka.replicas": {"enum": [1, 3]},
    "kafka.config": MAP,
    "kafka.topics.config": MAP,
    "kafka.quotas.accessPoint": {
        "type": "object", "additionalProperties": False, "properties": {
            "bytesPerSecond": {"type": "integer", "minimum": 1024},
            "requestPercent": {"type": "number", "exclusiveMinimum": 0}
        }, "required": ["bytesPerSecond", "requestPercent"]
    },
    "kafka.topics.partitions": {"type": "integer", "minimum": 1},
    "kafka.external.replication": {"type": "integer", "minimum": 1},
    "kafka.access.type": {"enum": ["none", "LoadBalancer", "NodePort"]},
    "kafka.external.ports": PORTS,
    "kafka.access.brokers": {
        "type": "array", "items": {
            "type": "object", "additionalProperties": False, "properties": {
                "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
                "loadBalancerIP": {"type": "string"}
            }
        }
    },
    "flink.stateBackend": {"enum": ["hashmap", "rocksdb"]},
    "flink.config": MAP,
    "flink.job": MAP,
    "flink.taskManager.replicas": {"type": "integer", "minimum": 1},
    "flink.taskManager.slots": {"type": "integer", "minimum": 1},
    "flink.taskManager.managedMiB": {"type": "integer", "minimum": 16},
    "flink.checkpoints.storage": {"enum": ["pvc", "s3"]},
    "flink.checkpoints.pvc.accessModes": {
        "type": "array", "minItems": 1, "items": {"enum": ["ReadWriteOnce", "ReadWriteMany"]}
    },
    "clickhouse.shards": {"type": "integer", "minimum": 1, "maximum": 64},
    "clickhouse.replicas": {"type": "integer", "minimum": 1, "maximum": 3},
    "clickhouse.keeper.replicas": {"enum": [1, 3, 5]},
    "clickhouse.external.url": {
        "type": "string", "pattern": "^$|^https?://[^/]+:[0-9]+$", "description": "http(s)://HOST:PORT"
    },
    "mlflow.database": {"enum": ["postgres", "sqlite"]},
    "mlflow.allowedHosts": TEXTS,
    "mlflow.allowedOrigins": TEXTS,
    "postgres.external.sslmode": {"enum": ["disable", "require", "verify-ca", "verify-full"]},
    "trainer.replicas": {"type": "integer", "minimum": 1},
    "policies": {"type": "object", "additionalProperties": {"type": "string"}},
    "push.replicas": {"type": "integer", "minimum": 1},
    "push.approvals": {"enum": ["required", "none"]},
    "registry.retrain.everyDays": {"type": "integer", "minimum": 0},
    "registry.retrain.psiAbove": {"type": "number", "minimum": 0},
    "registry.retrain.psiForHours": {"type": "integer", "minimum": 0},
    "registry.retrain.leastHours": {"type": "integer", "minimum": 0},
    "push.canaryShare": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "push.store": {"enum": ["postgres", "file"]},
    "push.access.type": {"enum": ["ClusterIP", "LoadBalancer", "NodePort"]},
    "push.enrol.url": {"type": "string", "pattern": "^$|^https://"},
    "push.enrol.certificateDays": {"type": "integer", "minimum": 1, "maximum": 825},
    "hostAgent.tickets": NAME,
    "hostAgent.namespace": NAME,
    "hostAgent.pseudonymKey": NAME,
    "hostAgent.site": {"type": "string", "pattern": "^[A-Za-z0-9._-]{0,64}$"},
    "hostAgent.ports": {**PORTS, "maxItems": 32},
    "hostAgent.peers": {"type": "array", "maxItems": 16, "items": {"type": "string", "pattern": "^[0-9A-Fa-f:./]+$"}},
    "hostAgent.cpuPermille": {"type": "integer", "minimum": 1, "maximum": 1000},
    "hostAgent.brokers": {"type": "array", "items": {"type": "string", "pattern": "^[^\\s:,']+:[0-9]+$"}},
    "hostAgent.pushUrl": {"type": "string", "pattern": "^$|^https://[^/\\s']+$", "description": "https://HOST[:PORT]"},
    "hostAgent.congestionControl": {"enum": ["off", "shadow", "enforce"]},
    "hostAgent.stateDir": {"type": "string", "pattern": "^/[A-Za-z0-9._/-]+$"},
    "grafana.egressPorts": PORTS,
    "grafana.secret.keys": TEXTS,
    "grafana.smtp.startTLS": {"enum": ["OpportunisticStartTLS", "MandatoryStartTLS", "NoStartTLS"]},
    "grafana.contactPoints": OBJECTS,
    "grafana.notificationPolicies": OBJECTS,
    "backup.keep": {"type": "integer", "minimum": 1},
    "backup.fullEvery": {"type": "integer", "minimum": 1},
}


def of(value, path: tuple) -> dict:
    name = ".".join(path)
    if name in PATHS:
        return PATHS[name]
    if path and path[-1] in EVERYWHERE:
        return EVERYWHERE[path[-1]]
    if isinstance(value, dict) and value:
        return {
            "type": "object", "additionalProperties": False,
            "properties": {key: of(inner, (*path, key)) for key, inner in value.items()}
        }
    kinds = {bool: "boolean", int: "integer", str: "string"}
    if type(value) not in kinds:
        sys.exit(f"schema.py: {name} of values.yaml is a {type(value).__name__}; say in PATHS what may stand there")
    return {"type": kinds[type(value)]}


#: What stands in many places stands in the schema once: Helm keeps it in every release's Secret.
SHARED = {"quantity": QUANTITY, "resources": RESOURCES, "map": MAP, "annotations": EVERYWHERE["annotations"],
          "extraEnv": EVERYWHERE["extraEnv"], "objects": OBJECTS, "port": EVERYWHERE["port"]}


def shared(schema, top: bool = True):
    """The same, with references to SHARED."""
    for name, value in SHARED.items() if not top else ():
        if schema == value:
            return {"$ref": f"#/definitions/{name}"}
    if isinstance(schema, dict):
        return {key: shared(inner, key in ("properties", "definitions")) for key, inner in schema.items()}
    return schema


def text() -> str:
    schema = of(yaml.safe_load((CHART / "values.yaml").read_text()), ())
    # Helm gives every chart the key `global`.
    schema["properties"]["global"] = {"type": "object"}
    definitions = {name: {key: shared(inner, key == "properties") for key, inner in value.items()}
                   for name, value in SHARED.items()}
    return json.dumps(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "Values of chart oal (generated by helm/schema.py from values.yaml)", **shared(schema),
            "definitions": definitions
        }, indent=1) + "\n"


if __name__ == "__main__":
    target = CHART / "values.schema.json"
    if "--check" in sys.argv[1:]:
        if not target.exists() or target.read_text() != text():
            sys.exit("helm/oal/values.schema.json is stale; mend with: make -C helm gen")
    else:
        target.write_text(text())
