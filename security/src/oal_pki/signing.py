"""The keys that sign bundles, one for each signer, and the file of public keys that access points trust."""
from oal_schema import keys

from oal_pki import folder as files
from oal_pki.folder import Folder

SIGNERS = ("registry", "online")


def ensure(folder: Folder) -> list[str]:
    """Make the keys that are not there; their files' names. Keys that an operator added to the trusted file stay in it."""
    made = []
    trusted = folder.bundle_keys
    lines = trusted.read_text().splitlines() if trusted.exists() else ["# Keys whose bundles APs accept"]
    before = list(lines)
    for signer in SIGNERS:
        path = folder.secrets / f"sign-{signer}.pem"
        if not path.exists():
            keys.make(path)
            made.append(path.name)
            line = keys.public_line(keys.load(path), signer)
        elif trusted.exists():
            continue  # an operator who took its line out meant it
        else:
            line = keys.public_line(keys.load(path), signer)
        if line not in lines:
            lines.append(line)
    if lines != before or not trusted.exists():
        files.write(trusted, "\n".join(lines) + "\n", 0o644)
    return made
