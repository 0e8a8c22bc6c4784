"""The master keys that access points' batch keys are derived from (schema/README.md, "Who made a batch")."""
import base64
import secrets

from oal_schema import mac

from oal_pki import folder as files
from oal_pki.errors import PkiError
from oal_pki.folder import Folder

HEAD = (
    "# Master keys of the MAC of a batch: KEY_ID BASE64. The highest KEY_ID is the one that new keys are derived"
    " from.\n"
)


def read(folder: Folder) -> dict[int, bytes]:
    try:
        return mac.read_masters(folder.mac_masters)
    except FileNotFoundError:
        raise PkiError(f"{folder.mac_masters} is missing; make it with `oal-ca init {folder.dir}`") from None
    except ValueError as error:
        raise PkiError(str(error)) from None


def _write(folder: Folder, masters: dict[int, bytes]) -> None:
    files.write(
        folder.mac_masters,
        HEAD + "".join(f"{key_id} {base64.b64encode(key).decode()}\n" for key_id, key in sorted(masters.items())))


def ensure(folder: Folder) -> bool:
    if folder.mac_masters.exists():
        read(folder)
        return False
    _write(folder, {1: secrets.token_bytes(mac.KEY_BYTES)})
    return True


def rotate(folder: Folder) -> int:
    """Add a master, which new keys are derived from; the older ones stay good until they are dropped. Its key_id."""
    masters = read(folder)
    key_id = max(masters) + 1
    if key_id > 255:
        raise PkiError(
            f"{folder.mac_masters}: key_id 255 is taken and is the last; begin anew with a fresh file, and enrol every"
            " access point again"
        )
    _write(folder, masters | {key_id: secrets.token_bytes(mac.KEY_BYTES)})
    return key_id


def drop(folder: Folder, key_id: int) -> None:
    """Take a master away: batches under keys of it are refused from then on."""
    masters = read(folder)
    if key_id not in masters:
        raise PkiError(f"{folder.mac_masters} has no key_id {key_id}; there are {', '.join(map(str, sorted(masters)))}")
    if key_id == max(masters):
        raise PkiError(f"key_id {key_id} is the newest, which new keys are derived from; rotate first")
    del masters[key_id]
    _write(folder, masters)


def ap_lines(folder: Folder, aps) -> str:
    """What an exporter's option mac_keys reads, for each (ap_id, site)."""
    return mac.ap_lines(read(folder), aps)
