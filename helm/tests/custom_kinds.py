"""Schemas for kubeconform of the kinds that the chart makes and Kubernetes has not: out of their own projects' CRDs."""
import json
import subprocess
from pathlib import Path

import yaml

KINDS = {"HTTPRoute", "TLSRoute", "ServiceMonitor", "PrometheusRule", "Certificate", "Issuer"}
#: Go module → its CRDs that the chart makes objects of. The versions are those whose CRDs were read.
MODULES = {
    "sigs.k8s.io/gateway-api@v1.4.0": ["config/crd/experimental/gateway.networking.k8s.io_httproutes.yaml",
                                       "config/crd/experimental/gateway.networking.k8s.io_tlsroutes.yaml"],
    "github.com/prometheus-operator/prometheus-operator@v0.85.0": [
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"],
    "github.com/cert-manager/cert-manager@v1.21.2": ["deploy/crds/cert-manager.io_certificates.yaml",
                                                     "deploy/crds/cert-manager.io_issuers.yaml"],
}


def closed(schema):
    """The same, refusing what the CRD does not name: the API server would drop it without a word."""
    if isinstance(schema, dict):
        made = {key: closed(inner) for key, inner in schema.items()}
        if "properties" in made and not made.get("x-kubernetes-preserve-unknown-fields"):
            made.setdefault("additionalProperties", False)
        return made
    return [closed(inner) for inner in schema] if isinstance(schema, list) else schema


def write(folder: Path) -> Path:
    """FOLDER with KIND-GROUP-VERSION.json, as kubeconform's names are."""
    folder.mkdir(parents=True, exist_ok=True)
    for module, files in MODULES.items():
        done = subprocess.run(["go", "mod", "download", "-json", module], check=True, stdout=subprocess.PIPE, text=True,
                              cwd=folder)
        for file in files:
            crd = yaml.safe_load((Path(json.loads(done.stdout)["Dir"]) / file).read_text())["spec"]
            for version in crd["versions"]:
                schema = closed(version["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                name = f"{crd['names']['kind'].lower()}-{crd['group'].split('.')[0]}-{version['name']}.json"
                (folder / name).write_text(json.dumps(schema))
    return folder
