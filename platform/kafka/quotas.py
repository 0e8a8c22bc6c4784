"""How much an access point may send: a quota for each principal by itself, at each broker, whatever its client says.

Every principal has the default, but for those that `topics.yaml` names (the services), which have none. An access
point that is to have another gets it here, and keeps it when topics are applied again.

usage: quotas.py SPEC.yaml BOOTSTRAP PKI_FOLDER NAME [--aps N]
"""
import argparse
import ssl
import struct

import yaml
from broker_requests import NO_TAGS, Connection, RequestError, array, check, optional, text

# (api key, version)
DESCRIBE_CLIENT_QUOTAS = (48, 1)
ALTER_CLIENT_QUOTAS = (49, 1)
EXACT, DEFAULT = 0, 1
#: Of those without a quota: what has no entry of its own has the default.
UNLIMITED = 1e15
DEFAULT_USER = None
#: Services that topics.yaml names nowhere, because they may do everything.
SUPER_USERS = ("admin", "broker")


def principal(ap_id: str) -> str:
    """Of an access point, as ssl.principal.mapping.rules make it (server.properties)."""
    return f"ap:{ap_id}"


def wanted(spec: dict) -> dict[str | None, dict[str, float]]:
    """Quotas by user; None is the default of every user."""
    default = {name: float(value) for name, value in spec["quotas"]["ap"].items()}
    services = {*spec["acls"], *SUPER_USERS} - {"ap"}
    return {DEFAULT_USER: default} | {name: dict.fromkeys(default, UNLIMITED) for name in sorted(services)}


def connect(bootstrap: str, pki: str) -> Connection:
    """To the first broker of BOOTSTRAP that answers, as admin."""
    context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
    context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
    for server in (servers := bootstrap.split(",")):
        host, _, port = server.strip().rpartition(":")
        try:
            return Connection(host, int(port), context)
        except OSError:
            if server == servers[-1]:
                raise
    raise AssertionError("a list has a last one")


def describe(broker: Connection, user: str | None) -> dict[str, float]:
    """The user's own quotas; empty when there are none."""
    how = struct.pack(">b", DEFAULT if user is None else EXACT)
    component = text("user") + how + optional(user) + NO_TAGS
    answer = broker.ask(DESCRIBE_CLIENT_QUOTAS, array([component]) + b"\1" + NO_TAGS)  # of the user alone
    answer.number("i")  # throttled for so many ms
    error, message = answer.number("h"), answer.text()
    check(error, "DescribeClientQuotas", message)

    def part():
        answer.text(), answer.text(), answer.tags()

    def value():
        found = answer.text(), answer.number("d")
        answer.tags()
        return found

    def entry():
        answer.array(part)
        values = answer.array(value)
        answer.tags()
        return values

    return {name: number for values in answer.array(entry) for name, number in values}


def alter(broker: Connection, quotas: dict[str | None, dict[str, float]]) -> None:
    """What is not named stays as it is."""
    def entry(user, values):
        ops = (text(name) + struct.pack(">d?", number, False) + NO_TAGS for name, number in values.items())
        return array([text("user") + optional(user) + NO_TAGS]) + array(ops) + NO_TAGS

    answer = broker.ask(ALTER_CLIENT_QUOTAS, array(entry(*each) for each in quotas.items()) + b"\0" + NO_TAGS)
    answer.number("i")

    def part():
        answer.text(), answer.text(), answer.tags()

    def outcome():
        error, message = answer.number("h"), answer.text()
        answer.array(part)
        answer.tags()
        check(error, "AlterClientQuotas", message)

    answer.array(outcome)


def apply(bootstrap: str, pki: str, quotas: dict[str | None, dict[str, float]]) -> None:
    with connect(bootstrap, pki) as broker:
        changed = {user: values for user, values in quotas.items() if describe(broker, user) != values}
        if changed:
            alter(broker, changed)


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(prog="quotas", description=__doc__.split("\n\nusage")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", metavar="SPEC", help="YAML: topics, ACLs and quotas")
    parser.add_argument("bootstrap", metavar="BOOTSTRAP", help="HOST:PORT of brokers, several separated by commas")
    parser.add_argument("pki", metavar="PKI", help="folder with ca.crt, admin.crt and admin.key")
    parser.add_argument("name", metavar="NAME", help="of the access point, as in its certificate")
    parser.add_argument("--aps", type=float, default=1, metavar="N",
                        help="what N access points have: for one that is busier, or plays several (%(default)s)")
    options = parser.parse_args(arguments)
    with open(options.spec) as file:
        one = wanted(yaml.safe_load(file))[DEFAULT_USER]
    try:
        apply(options.bootstrap, options.pki,
              {principal(options.name): {name: value * options.aps for name, value in one.items()}})
    except (OSError, RequestError) as error:
        raise SystemExit(f"quotas: {options.bootstrap}: {error}") from None


if __name__ == "__main__":
    main()
