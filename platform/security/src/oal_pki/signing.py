"""The keys that sign bundles, one for each signer, and the file of public keys that access points trust."""
from oal_schema import keys
from oal_schema.grant import grant

from oal_pki import folder as files
from oal_pki.folder import Folder

# What each may sign, by the name of its key's file: sign-NAME.pem.
SIGNERS = {"registry": grant("registry"), "online": grant("trainer")}


def ensure(folder: Folder) -> list[str]:
    """Make the keys that are not there; their files' names. Keys that an operator added to the trusted file stay in it.

    A line of these keys that an older set-up wrote says no role: it gets one, or its key could sign nothing any more.
    """
    trusted = folder.bundle_keys
    there = trusted.exists()
    lines = trusted.read_text().splitlines() if there else ["# Keys whose bundles APs accept, and what each may sign"]
    before, made = list(lines), []
    for signer, may in SIGNERS.items():
        path = folder.secrets / f"sign-{signer}.pem"
        is_new = not path.exists()
        if is_new:
            keys.make(path)
            made.append(path.name)
        key = keys.load(path)
        older, line = keys.public_line(key, signer), keys.public_line(key, signer, may)
        if older in lines:
            lines[lines.index(older)] = line
        elif is_new or not there:  # else an operator took its line out, or changed it, and meant it
            lines.append(line)
    if lines != before:
        files.write(trusted, "\n".join(lines) + "\n", 0o644)
    return made
