"""Everything that a platform needs, made where it is missing and renewed where it lapses."""
from oal_pki import folder as files
from oal_pki import masters, names, passwords, signing, stores
from oal_pki.authority import DAYS, Authority
from oal_pki.errors import PkiError
from oal_pki.folder import Folder

OPERATOR = "operator"


def init(folder: Folder, hosts: dict[str, list[str]] | None = None, keep_root_key: bool = True) -> list[str]:
    """The names of what was made or renewed."""
    folder.make()
    unknown = set(hosts or {}) - set(names.SERVICES)
    if unknown:
        raise PkiError(
            f"--hosts: no such service: {', '.join(sorted(unknown))}; there are {', '.join(names.SERVICES)}; "
            "another one is made by `oal-ca service`")
    authority = Authority(folder, keep_root_key)
    made = [name for name in names.SERVICES if service(authority, name, (hosts or {}).get(name, []))]
    if authority.issue(OPERATOR, "operator"):
        made.append(OPERATOR)
    stores.flink_rest(authority)
    if stores.flink_internal(folder):
        made.append("flink-internal")
    if masters.ensure(folder):
        made.append("mac-masters")
    return made + signing.ensure(folder) + passwords.ensure(folder)


def service(authority: Authority, name: str, hosts: list[str]) -> bool:
    """The certificate of a service; with hosts, or by its kind, a server's, which is good for loopback too."""
    kind = names.SERVICES.get(names.check(name, "a service's name"), names.Service(server=bool(hosts)))
    if hosts and not kind.server:
        raise PkiError(f"{name} is not a server, so its certificate names no hosts; the servers are "
                       f"{', '.join(n for n, k in names.SERVICES.items() if k.server)}")
    wanted = [names.host(host) for host in (*names.LOOPBACK, *hosts)] if kind.server else []
    return authority.issue(name, "service", wanted, kind.client, kind.server, kind.rsa)


def access_points(authority: Authority, ap_ids: list[str], site: str = "", days: float = DAYS) -> list[str]:
    """Certificate and batch key of each: AP_ID.crt, .key, .pem and .mac-keys in pki/. The names of those written."""
    alternatives = [names.site_uri(names.check_site(site))] if site else []
    made = []
    for ap_id in ap_ids:
        names.check(ap_id, "an AP's id")
        written = authority.issue(ap_id, "ap", alternatives, days=days)
        file, line = authority.folder.pki / f"{ap_id}.mac-keys", masters.ap_lines(authority.folder, [(ap_id, site)])
        if not file.exists() or file.read_text() != line:
            files.write(file, line)
            written = True
        if written:
            made.append(ap_id)
    return made


def person(authority: Authority, name: str) -> bool:
    """The certificate of somebody who may open Flink's page."""
    return authority.issue(names.check(name, "a person's name"), "operator")
