"""oal-sniffer: TCP state at the sender, for the truth of the window model. `run` on the server, `reflect` on the AP (or
near it).
"""
import argparse
import ipaddress
import json
import os
import platform
import signal
import sys
import threading

from guest.namespace import inside

from . import clock, sinks
from .diag import DiagError, InetDiag
from .service import Filter, Sniffer

EPILOG = """A row is one TCP connection at one moment: congestion window, slow start threshold, round trips, delivery
and pacing rate, what is under way, lost and sent again; columns are those of the table sender_tcp
(schema/generated/reference.md). A row is written when it differs from the connection's last, and once a second. Needs
no privileges but for --netns."""


def endpoint(text: str) -> tuple[str, int]:
    """ADDRESS or ADDRESS:PORT; an IPv6 address with a port in brackets."""
    host, colon, port = text.rpartition(":")
    if text.count(":") > 1 and not text.startswith("["):
        host, colon, port = text, "", ""
    host = (host if colon else text).strip("[]")
    try:
        ipaddress.ip_address(host)
        return host, int(port) if colon else clock.PORT
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not ADDRESS or ADDRESS:PORT") from None


def rate(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 1000:
        raise argparse.ArgumentTypeError("from 0.1 to 1000 a second")
    return value


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="oal-sniffer", description=__doc__, epilog=EPILOG)
    commands = p.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="sample this host's TCP connections until SIGTERM or Ctrl-C", epilog=EPILOG)
    run.add_argument("--host", default=platform.node(), help="name of this sender in the rows (default: host name)")
    run.add_argument("--rate-hz", type=rate, default=50.0, help="samples a second (50)")
    run.add_argument("--port", type=int, action="append", default=[],
                     help="only connections of this local port; may be repeated")
    run.add_argument("--peer", type=ipaddress.ip_network, action="append", default=[], metavar="NET",
                     help="only peers in this network (10.0.0.0/8); may be repeated")
    run.add_argument("--reflector", type=endpoint, metavar="ADDRESS[:PORT]",
                     help=f"compare clocks with `oal-sniffer reflect` there (port {clock.PORT})")
    run.add_argument("--output", metavar="FILE",
                     help="gzipped rows; without this and --brokers they go to standard output, a JSON object each")
    run.add_argument("--netns", help="sample this named network namespace (needs root)")
    kafka = run.add_argument_group(f"Kafka (topic {sinks.TOPIC})")
    kafka.add_argument("--brokers", metavar="HOST:PORT,…")
    for name in ("ca", "certificate", "key"):
        kafka.add_argument(f"--{name}", metavar="PEM", help="file for TLS; without --ca the stream is plain text")
    reflect = commands.add_parser("reflect", help="answer clock requests until SIGTERM or Ctrl-C")
    reflect.add_argument("--listen", type=endpoint, default=("0.0.0.0", clock.PORT), metavar="ADDRESS[:PORT]")
    reflect.add_argument("--netns", help="in this named network namespace (needs root)")
    return p.parse_args()


def kafka_options(args: argparse.Namespace) -> dict:
    for name in ("ca", "certificate", "key"):
        path = getattr(args, name)
        if path and not os.access(path, os.R_OK):
            raise sinks.SinkError(f"--{name} {path}: cannot be read")
    options = {"bootstrap.servers": args.brokers}
    if args.ca:
        options |= {"security.protocol": "ssl", "ssl.ca.location": args.ca}
    if args.certificate:
        options |= {"ssl.certificate.location": args.certificate, "ssl.key.location": args.key}
    return options


def run(args: argparse.Namespace, stop: threading.Event) -> int:
    out = [sinks.File(args.output)] if args.output else []
    if args.brokers:
        out.append(sinks.Kafka(args.host, kafka_options(args)))
    with inside(args.netns):
        diag = InetDiag()
        asking = clock.Clock(clock.open_socket(
            ("::" if ":" in args.reflector[0] else "0.0.0.0", 0)), args.reflector) if args.reflector else None
    sniffer = Sniffer(args.host, diag, out or [sinks.Lines(sys.stdout)], args.rate_hz,
                      Filter(frozenset(args.port), tuple(args.peer)), asking)
    sniffer.run(stop)
    print(json.dumps(sniffer.status()), file=sys.stderr)
    return 0


def reflect(args: argparse.Namespace, stop: threading.Event) -> int:
    with inside(args.netns):
        sock = clock.open_socket(args.listen)
    reflector = clock.Reflector(sock)
    reflector.serve(stop)
    print(json.dumps({"answered": reflector.answered, "refused": reflector.refused}), file=sys.stderr)
    return 0


def main() -> int:
    args = arguments()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        return (run if args.command == "run" else reflect)(args, stop)
    except BrokenPipeError:
        return 0
    except (DiagError, sinks.SinkError, OSError) as error:
        print(f"oal-sniffer: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
