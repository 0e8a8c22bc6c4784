"""The command line, `platform/local/oal-local`."""
import argparse
import json
import os
import shlex
import signal
import subprocess
import sys

from oal_local import clickhouse, demo, pki
from oal_local.errors import PlatformError
from oal_local.platform import DEFAULT_STATE, Platform, setup
from oal_local.services import GROUPS, SERVICES

ENDING = f"""services: {', '.join(SERVICES)} (groups: {', '.join(GROUPS)}).
The state folder holds everything an instance writes; several instances with their own folders run side by side with
--ports auto."""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="oal-local",
        description=(
            "The platform as processes on loopback: Kafka, Flink, ClickHouse, MLflow, trainer, model registry, push"
            " service."
        ),
        epilog=ENDING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name, help_text):
        command = commands.add_parser(name, help=help_text, description=help_text)
        command.add_argument("--state", default=os.environ.get("OAL_STATE") or str(DEFAULT_STATE), metavar="DIR",
                             help="the instance's folder (default: $OAL_STATE or build/local)")
        return command

    add("setup", "download and prepare what is needed, once; cached outside the tree")
    up = add("up", "start what is not running, in order, and wait until it is ready")
    up.add_argument("--ports", choices=("auto", "default"),
                    help="free loopback ports, or the well-known ones (default: as before, at first `default`)")
    up.add_argument("--only", metavar="A,B", type=lambda text: text.split(","), help="start these services only")
    up.add_argument("--no-migrate", action="store_true", help="leave ClickHouse's schema as it is")
    up.add_argument("--partitions", type=int, help="partitions of each topic")
    up.add_argument("--job-jar", help="the Flink job (default: stream-jobs/target/stream-jobs.jar)")
    up.add_argument("--job-class", help="its main class (default: oal.stream.Main)")
    up.add_argument("--job-arg", action="append", dest="job_args", metavar="ARG",
                    help="an argument after `--config job.properties`")
    up.add_argument("--job-property", action="append", metavar="KEY=VALUE", help="a line for job.properties")
    up.add_argument("--flink", action="append", metavar="KEY=VALUE",
                    help="a Flink option, instead of the one in config/flink/config.yaml")
    up.add_argument("--checkpoint-interval", help="how often rows become visible (default: 1s)")
    up.add_argument("--state-backend", choices=("hashmap", "rocksdb"))
    up.add_argument("--parallelism", type=int)
    up.add_argument("--taskmanager-heap-mib", type=int)
    up.add_argument("--trainer-settings", help="thresholds of the online trainer (default: training/online.yaml)")
    up.add_argument("--policies", help="folder of control policies (default: policies/in-force)")
    demo.add_arguments(add("demo", "the whole path: replay captures as access points and watch the data arrive"))
    add("down", "stop everything, in reverse order; data stays")
    add("status", "state, pid and readiness of each service").add_argument("--json", action="store_true")
    add("env", "addresses and files, for `eval`").add_argument("--json", action="store_true")
    for name, help_text in (("restart", "stop a service and start it again"), ("logs", "print a service's log"),
                            ("stop", "stop one service; it stays down until `start`"),
                            ("start", "start one service again"), ("wait", "return when a service is ready")):
        command = add(name, help_text)
        command.add_argument("service", choices=list(SERVICES))
        if name == "logs":
            command.add_argument("-f", "--follow", action="store_true")
    kill = add("kill", "send a service's process a signal; it is started again")
    kill.add_argument("service", choices=list(SERVICES))
    kill.add_argument("-9", dest="number", action="store_const", const=signal.SIGKILL, default=signal.SIGTERM,
                      help="SIGKILL (default: SIGTERM)")
    cert = add("cert",
               "make a certificate and print its files: of an AP, or of a person (operator) who opens Flink's page")
    cert.add_argument("role", choices=["ap", "operator"])
    cert.add_argument("name", nargs="?", default="operator", help="ap_id, or the person's name")
    cert.add_argument("--site", default="", help="the AP's site")
    cert.add_argument("--p12", action="store_true", help="a person's for a browser, too")
    add("migrate", "bring ClickHouse's schema up to date")
    return top


def settings_of(options) -> dict:
    def pairs(values):
        split = [value.partition("=") for value in values]
        if bad := [key for key, equals, _ in split if not equals]:
            raise PlatformError(f"`{bad[0]}` should be KEY=VALUE")
        return {key: value for key, _, value in split}

    names = ("partitions", "job_jar", "job_class", "job_args", "checkpoint_interval", "state_backend", "parallelism",
             "taskmanager_heap_mib", "trainer_settings", "policies")
    changes = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.job_jar:
        changes["job_jar"] = os.path.abspath(options.job_jar)
    for name in ("trainer_settings", "policies"):
        if getattr(options, name):
            changes[name] = os.path.abspath(getattr(options, name))
    if options.job_property:
        changes["job_properties"] = pairs(options.job_property)
    if options.flink:
        changes["flink"] = pairs(options.flink)
    return changes


def run(options) -> int:
    if options.command == "setup":
        setup()
        return 0
    if options.command == "up":
        platform = Platform(options.state, ports=options.ports, only=options.only, migrate=not options.no_migrate,
                            **settings_of(options))
        platform.up()
        print_env(platform, False)
        return 0
    if options.command == "demo":
        return run_demo(Platform(options.state, **demo.settings(options)), options)
    platform = Platform(options.state)
    match options.command:
        case "down":
            platform.down()
        case "status":
            return print_status(platform, options.json)
        case "env":
            print_env(platform, options.json)
        case "restart":
            platform.restart(options.service)
        case "stop":
            platform.stop(options.service)
        case "start":
            platform.start(options.service)
        case "wait":
            platform.wait_ready(options.service)
        case "kill":
            print(platform.kill(options.service, options.number))
        case "logs":
            log = str(platform.state.log(options.service))
            return subprocess.run(["tail", "-n", "+1", *(["-f"] if options.follow else []), log]).returncode
        case "cert" if options.role == "operator":
            print(pki.run(platform.state, "operator", options.name, *(["--p12"] if options.p12 else [])), end="")
        case "cert":
            for option, file in platform.kafka.ap(options.name, options.site).items():
                print(f"{option}={file}")
        case "migrate":
            clickhouse.migrate(platform.state, platform.settings)
    return 0


def run_demo(platform: Platform, options) -> int:
    """The demo. With --once the platform is stopped afterwards, unless it ran before or --keep says otherwise."""
    ran_before = platform.running()
    try:
        return demo.run(platform.up(), options)
    finally:
        if options.once and not options.keep and not ran_before:
            print("stopping the platform (--keep, or KEEP=1, leaves it running) …", flush=True)
            platform.down()
        elif platform.running():
            print("the platform still runs: `make down` stops it, `make demo` goes on with it", flush=True)


def print_env(platform: Platform, as_json: bool) -> None:
    if as_json:
        print(json.dumps(platform.env(), indent=1))
    else:
        print("\n".join(f"export {name}={shlex.quote(value)}" for name, value in platform.env().items()))


def print_status(platform: Platform, as_json: bool) -> int:
    """Exit 0 when every service that was started is ready, 3 otherwise."""
    rows = platform.status()
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            print(
                f"{row['name']:12} {row['state']:9} {'ready' if row['ready'] else 'not ready':10} pid"
                f" {row['pid'] or '-':>7}  up {row['uptime_s']} s"
            )
    started = [row for row in rows if row["state"] != "STOPPED"]
    return 0 if started and all(row["ready"] for row in started) else 3


def main() -> int:
    options = parser().parse_args()
    try:
        return run(options)
    except PlatformError as error:
        print(f"oal-local: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
