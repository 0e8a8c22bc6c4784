"""What others make of a certificate: OpenSSL, and Java's trust manager."""
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from oal_pki import folder as files
from oal_pki.authority import certify, pem, text


def openssl(roots: Path, chain: Path, purpose: str = "sslclient") -> str:
    """`OK`, or why not."""
    done = subprocess.run([
        "openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile",
        str(roots), "-untrusted",
        str(chain),
        str(chain)
    ], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return "OK" if done.returncode == 0 else done.stdout


@cache
def _verify() -> tempfile.TemporaryDirectory:
    """Verify.java, compiled: once for the run."""
    classes = tempfile.TemporaryDirectory(prefix="oal-verify-")
    subprocess.run(["javac", "-d", classes.name, str(Path(__file__).parent / "Verify.java")], check=True, timeout=300)
    return classes


def java(roots: Path, *chains: Path, password: str = "-") -> list[str]:
    """A line each: `trusted`, or why not."""
    done = subprocess.run([
        "java", "-XX:TieredStopAtLevel=1", "-cp",
        _verify().name, "Verify",
        str(roots), password, *map(str, chains)
    ], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def forge(authority, issuer_role: str, name: str, role: str, into: Path, **options) -> Path:
    """What whoever holds the CA of `issuer_role` could sign: NAME with another role. NAME.crt (the chain) and NAME.key
    in `into`.
    """
    from cryptography.hazmat.primitives.asymmetric import ec

    key, issuer = ec.generate_private_key(ec.SECP256R1()), authority.issuer(issuer_role)
    into.mkdir(exist_ok=True)
    files.write(into / f"{name}.key", pem(key))
    files.write(into / f"{name}.crt", text(certify(issuer, key.public_key(), name, role, **options), *issuer.chain))
    return into / f"{name}.crt"
