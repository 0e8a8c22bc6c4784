"""The keys that sign bundles, one for each signer, and the file of public keys that access points trust."""
from oal_schema import keys

from oal_pki import folder as files
from oal_pki.folder import Folder

SIGNERS = ("registry", "online")


def ensure(folder: Folder) -> list[str]:
    """Make the keys that are not there; their files' names. Keys that an operator added to the trusted file stay in it.
    """
    made, new = [], []
    trusted = folder.bundle_keys
    there = trusted.exists()
    for signer in SIGNERS:
        path = folder.secrets / f"sign-{signer}.pem"
        if not path.exists():
            keys.make(path)
            made.append(path.name)
        elif there:
            continue  # an operator who took its line out meant it
        new.append(keys.public_line(keys.load(path), signer))
    if new:
        before = trusted.read_text().splitlines() if there else ["# Keys whose bundles APs accept"]
        files.write(trusted, "\n".join([*before, *new]) + "\n", 0o644)
    return made
