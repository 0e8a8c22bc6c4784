"""A real Kubernetes control plane: etcd, API server, controllers, scheduler. Nodes: fake_nodes.py, real/."""
import datetime
import ipaddress
import json
import os
import secrets
import socket
import subprocess
import time
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

HERE = Path(__file__).resolve().parent
PEM = serialization.Encoding.PEM
CLUSTER_IP = "10.96.0.1"  # of the Service `kubernetes`: the first of the range below


def tools(*which: str) -> Path:
    return Path(
        subprocess.run([HERE / "tools.sh", *which], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class ControlPlane:
    """`address` is where the API server listens; `inside` are the words before every command that put it into a
    network namespace."""

    #: Whether pods reach the API server by Service `kubernetes`.
    api_for_pods = False

    def __init__(self, folder: Path, address: str = "127.0.0.1", inside: tuple[str, ...] = ()):
        self.folder, self.bin, self.address, self.inside = folder, tools(), address, inside
        self.processes: list[tuple[str, subprocess.Popen]] = []
        self.kubeconfig = folder / "kubeconfig"
        self.etcd, self.etcd_peer, self.api, self.controllers, self.scheduler = free_ports(5)

    def start(self) -> "ControlPlane":
        self._credentials()
        token = secrets.token_hex(16)
        (self.folder / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
        self.kubeconfig.write_text(
            json.dumps({
                "apiVersion": "v1", "kind": "Config", "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {
                    "server": f"https://{self.address}:{self.api}",
                    "certificate-authority": str(self.folder / "ca.crt")
                }}], "users": [{"name": "u", "user": {"token": token}}]
            }))
        client, peer = f"http://127.0.0.1:{self.etcd}", f"http://127.0.0.1:{self.etcd_peer}"
        # `server` is etcd: a Go program has its package's name.
        self._run("etcd", self.bin / "server", "--name=d", f"--data-dir={self.folder / 'etcd'}",
                  f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}",
                  f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=d={peer}", "--unsafe-no-fsync")
        self._run("apiserver", self.bin / "kube-apiserver", f"--etcd-servers={client}",
                  f"--bind-address={self.address}", f"--advertise-address={self.address}", f"--secure-port={self.api}",
                  f"--tls-cert-file={self.folder / 'api.crt'}", f"--tls-private-key-file={self.folder / 'api.key'}",
                  "--service-account-issuer=https://kubernetes.default.svc",
                  f"--service-account-key-file={self.folder / 'accounts.key'}",
                  f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
                  "--service-cluster-ip-range=10.96.0.0/16", f"--token-auth-file={self.folder / 'tokens.csv'}",
                  "--authorization-mode=RBAC", "--allow-privileged=true",
                  "--kubelet-preferred-address-types=InternalIP",
                  f"--endpoint-reconciler-type={'lease' if self.api_for_pods else 'none'}")
        self.wait("the API server is ready", lambda: self.kubectl("get", "--raw", "/readyz", check=False) == "ok", 300)
        self._run(
            "controllers",
            self.bin / "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.controllers}",
            f"--service-account-private-key-file={self.folder / 'accounts.key'}",
            f"--root-ca-file={self.folder / 'ca.crt'}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            f"--cert-dir={self.folder / 'controllers'}",
            # A lost node's pods are declared so after seconds, not a minute.
            "--node-monitor-grace-period=20s")
        self._run("scheduler", self.bin / "kube-scheduler", f"--kubeconfig={self.kubeconfig}",
                  "--bind-address=127.0.0.1", f"--secure-port={self.scheduler}", "--leader-elect=false",
                  f"--cert-dir={self.folder / 'scheduler'}")
        return self

    def stop(self) -> None:
        for _, process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    def _run(self, name: str, *command) -> None:
        """In a session of its own: Ctrl-C is ours, and ends it in order."""
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen([*self.inside, *(str(word) for word in command)], stdout=log,
                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=self.folder,
                                       start_new_session=True)
        self.processes.append((name, process))
        (self.folder / f"{name}.pid").write_text(str(process.pid))

    def wait(self, what: str, condition, timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            for name, process in self.processes:
                if process.poll() is not None:
                    raise RuntimeError(
                        f"{name} ended with {process.returncode}:\n{(self.folder / f'{name}.log').read_text()[-3000:]}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {timeout_s} s: {what}")
            time.sleep(0.1)

    def _credentials(self) -> None:
        """A CA and the API server's certificate; the key that signs service accounts' tokens."""
        now = datetime.datetime.now(datetime.UTC)

        def certificate(name: str, key, issuer: str, signer, *extensions):
            builder = (x509.CertificateBuilder().subject_name(x509.Name([
                x509.NameAttribute(NameOID.COMMON_NAME, name)
            ])).issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)])).public_key(
                key.public_key()).serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(
                    hours=1)).not_valid_after(now + datetime.timedelta(days=2)))
            for extension in extensions:
                builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            return builder.sign(signer, hashes.SHA256()).public_bytes(PEM)

        def private(key) -> bytes:
            return key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())

        ca, api = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        addresses = sorted({"127.0.0.1", self.address, CLUSTER_IP})
        names = x509.SubjectAlternativeName([
            *map(x509.DNSName, ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses)
        ])
        (self.folder / "ca.crt").write_bytes(
            certificate("test CA", ca, "test CA", ca, x509.BasicConstraints(ca=True, path_length=0)))
        (self.folder / "api.crt").write_bytes(
            certificate("api", api, "test CA", ca, x509.BasicConstraints(ca=False, path_length=None), names))
        (self.folder / "api.key").write_bytes(private(api))
        (self.folder / "accounts.key").write_bytes(private(rsa.generate_private_key(65537, 2048)))

    @property
    def kubectl_command(self) -> tuple[str, ...]:
        return (str(self.bin / "kubectl"), f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.folder / 'cache'}")

    def kubectl(self, *arguments: str, check: bool = True, text: str | None = None) -> str:
        done = subprocess.run([*self.inside, *self.kubectl_command, *arguments], input=text, capture_output=True,
                              text=True)
        if check and done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, *objects: dict) -> None:
        self.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def get(self, *arguments: str) -> list[dict]:
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))["items"]

    def helm(self, *arguments: str) -> subprocess.CompletedProcess:
        """stdout and stderr are text; the exit status is the caller's to judge."""
        environment = {"HOME": str(self.folder), "PATH": os.environ["PATH"]}
        done = subprocess.run([*self.inside, self.bin / "helm", f"--kubeconfig={self.kubeconfig}", *arguments],
                              capture_output=True, text=True, env=environment)
        # Helm speaks of every symbolic link that it follows.
        done.stderr = "\n".join(line for line in done.stderr.splitlines() if "found symbolic link" not in line)
        return done
