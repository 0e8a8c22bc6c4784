"""The command line, `platform/security/oal-ca`."""
import argparse
import json
import sys

from oal_pki import masters, platform, root, show, stores
from oal_pki.authority import DAYS, Authority
from oal_pki.errors import PkiError
from oal_pki.folder import Folder

DESCRIPTION = """Certificates, keys and passwords of a platform, in DIR/pki and DIR/secrets. Every command can be run
again: what is there and good stays, what lapses (less than a third of its life left) is made anew."""


def hosts_of(text: str) -> tuple[str, list[str]]:
    name, equals, rest = text.partition("=")
    hosts = [host for host in rest.split(",") if host]
    if not equals or not name or not hosts:
        raise argparse.ArgumentTypeError(f"`{text}` should be NAME=HOST,HOST…, for example broker=kafka,kafka-0.kafka")
    return name, hosts


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="oal-ca", description=DESCRIPTION)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(to, name, help_text):
        command = to.add_parser(name, help=help_text, description=help_text)
        command.add_argument("dir", metavar="DIR", help="the state folder")
        return command

    init = add(commands, "init", "make everything that a platform needs and is not there yet")
    init.add_argument("--hosts", action="append", type=hosts_of, default=[], metavar="NAME=HOST,…",
                      help="names and addresses of a server, beside localhost and 127.0.0.1; can be given again")
    init.add_argument("--no-root-key", action="store_true",
                      help="do not write the key of a root that is made now: nothing needs it until the issuing CAs are"
                      " in their last years; then the root is replaced by overlap")
    service = add(commands, "service", "the certificate of a service, OU=service")
    service.add_argument("name", metavar="NAME")
    service.add_argument(
        "--hosts", type=lambda text: [host for host in text.rpartition("=")[2].split(",")
                                      if host], default=[], metavar="HOST,…", help=
        "names and addresses that it is a server of, beside localhost and 127.0.0.1 (none: it only connects to others)")
    ap = add(commands, "ap", "certificate and batch key of access points by hand, for laboratories: real ones enrol")
    ap.add_argument("ap_ids", nargs="+", metavar="AP_ID")
    ap.add_argument("--site", default="", help="the site that they may name (default: none)")
    ap.add_argument("--days", type=float, default=DAYS, help=f"life of the certificates (default: {DAYS})")
    keys = add(commands, "mac-keys", "print the lines of an exporter's option mac_keys for these access points")
    keys.add_argument("ap_ids", nargs="+", metavar="AP_ID")
    keys.add_argument("--site", default="")
    person = add(commands, "operator", "the certificate of a person who may open Flink's page, OU=operator")
    person.add_argument("name", metavar="NAME", nargs="?", default=platform.OPERATOR)
    person.add_argument("--p12", action="store_true",
                        help="also NAME.p12 for a browser, with its password in NAME.password")
    of_masters = commands.add_parser("masters", help="master keys of the MAC of batches").add_subparsers(
        dest="action", required=True, metavar="ACTION")
    add(of_masters, "rotate",
        "add a master, which new keys are derived from; older ones stay good until they are dropped")
    add(of_masters, "drop", "take an old master away: batches under keys of it are refused").add_argument(
        "key_id", type=int, metavar="KEY_ID")
    of_root = commands.add_parser("root", help="the root CA").add_subparsers(dest="action", required=True,
                                                                             metavar="ACTION")
    rotate = of_root.add_parser("rotate", help="replace the root by overlap", description=root.__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    rotate.add_argument("step", choices=("begin", "switch", "end"))
    rotate.add_argument("dir", metavar="DIR")
    shown = add(commands, "show",
                "subjects, names and last days of what is there; exit 3 if something lapses within --within days")
    shown.add_argument("--json", action="store_true")
    shown.add_argument("--within", type=int, metavar="DAYS")
    return top


def run(options) -> int:
    folder = Folder(options.dir)
    if options.command != "init":
        folder.check()
    if options.command == "show":
        rows = show.certificates(folder)
        print(json.dumps(rows, indent=1) + "\n" if options.json else show.text(folder, rows), end="")
        return 3 if options.within is not None and any(row["days_left"] < options.within for row in rows) else 0
    if options.command == "mac-keys":
        print(
            masters.ap_lines(folder,
                             [(platform.names.check(ap_id, "an AP's id"), platform.names.check_site(options.site))
                              for ap_id in options.ap_ids]), end="")
        return 0
    with folder.locked():
        return change(folder, options)


def change(folder: Folder, options) -> int:
    match options.command:
        case "init":
            hosts: dict[str, list[str]] = {}
            for name, more in options.hosts:
                hosts.setdefault(name, []).extend(more)
            made = platform.init(folder, hosts, not options.no_root_key)
            if options.no_root_key and (folder.pki / "ca.key").exists():
                print(f"oal-ca: {folder.pki}/ca.key, the root's key, is here: take it to where only you reach it",
                      file=sys.stderr)
            print(f"oal-ca: {folder.dir}: " + (f"made {', '.join(made)}" if made else "everything is there"))
        case "service":
            platform.service(Authority(folder), options.name, options.hosts)
            _print_files(folder, options.name)
        case "ap":
            authority = Authority(folder)
            platform.access_points(authority, options.ap_ids, options.site, options.days)
            for ap_id in options.ap_ids:
                _print_files(folder, ap_id)
        case "operator":
            authority = Authority(folder)
            platform.person(authority, options.name)
            _print_files(folder, options.name)
            if options.p12:
                store, secret = stores.browser(authority, options.name)
                print(f"for a browser: {store}, its password is in {secret}")
        case "masters" if options.action == "rotate":
            print(
                f"oal-ca: key_id {masters.rotate(folder)} is the newest master. Push service and stream jobs read the"
                " file again by themselves; access points get keys of it with their next certificate"
            )
        case "masters":
            masters.drop(folder, options.key_id)
        case "root":
            {"begin": root.begin, "switch": root.switch, "end": root.end}[options.step](folder)
            made = platform.init(folder)
            if made:
                print(f"oal-ca: issued {', '.join(made)}")
            for row in show.certificates(folder):
                if row["file"] == "ca.crt":
                    print(f"trusted: {row['subject']} until {row['not_after'][:10]}")
    return 0


def _print_files(folder: Folder, name: str) -> None:
    files = [
        file.name for file in sorted(folder.pki.glob(f"{name}.*"))
        if file.suffix in (".crt", ".key", ".pem", ".mac-keys")
    ]
    print(f"{folder.pki}: {', '.join(files)}")


def main(arguments=None) -> int:
    options = parser().parse_args(arguments)
    try:
        return run(options)
    except PkiError as error:
        print(f"oal-ca: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"oal-ca: {error.filename or options.dir}: {error.strerror}", file=sys.stderr)
        return 1
