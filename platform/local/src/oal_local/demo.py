"""`make demo`: the whole path on this machine, with a live summary of every stage.

Captures of real kernels are replayed as virtual access points by the real exporter (or, with --live, the lab's access
point streams by itself) into Kafka; Flink decodes, labels and derives features; rows and training items end in
ClickHouse. The online trainer fits a tree per access point every second; trees and promoted models go to the access
points, which predict, and ClickHouse joins each prediction with what came true. What a policy would do with the
predictions is decided and reported (shadow); the live access point acts.
"""
import json
import secrets
import subprocess
import sys
import time
from pathlib import Path

from oal_local import control, grafana, loop, turns
from oal_local.approver import Approver
from oal_local.errors import PlatformError
from oal_local.exporter import Exporter, count_capture, let_go_of
from oal_local.paths import POLICIES, REPO, State
from oal_local.stages import Stages, verdict

CAPTURES = REPO / "lab" / "captures"
SUMMARY = REPO / "build" / "demo.json"
SITE, LIVE_SITE = "demo", "lab"
#: The captures that are played first. A long one repeats itself less: a model that has seen the whole loop knows its
#: future. The first models learn from the corpus and learning2 (loop.ITEMS), so that is not played.
ORDER = ("congested", "learning", "varying", "steady")
#: A demo of this length has something to show in every panel.
CHECKED_SECONDS = 120
#: The scenario of the live access point: one in which an access point can act. Its period is a turn of control.
FILES, LIVE_FILES = ("demo-mark.yaml", "demo-uplink-cap.yaml"), ("live.yaml", "live-mark.yaml", "live-uplink-cap.yaml")
LIVE_SCENARIO, TURN_SECONDS = "control", 20
DRAIN_SECONDS = 120  # after the source has stopped, until everything it made is a row


def add_arguments(command) -> None:
    command.add_argument("--aps", type=int, default=3, metavar="N", help="virtual access points (default: 3)")
    command.add_argument("--once", type=int, metavar="SECONDS",
                         help="run for that long, write build/demo.json, stop; exit 0 only if nothing was lost")
    command.add_argument("--keep", action="store_true", help="with --once: leave the platform running")
    command.add_argument(
        "--check-dashboards",
        action="store_true",
        help=(
            "at the end, run every query of the dashboards and alert rules and print what each returned; with --once"
            f" {CHECKED_SECONDS} or more that is done anyway"
        ),
    )
    command.add_argument("--live", action="store_true", help="take the lab's live access point instead of captures")
    command.add_argument("--scenario", default=LIVE_SCENARIO,
                         help=f"the lab's scenario, with --live (default: {LIVE_SCENARIO})")


def settings(options) -> dict:
    """Of the platform. The demo's own in-force files are put next to links to the reviewed ones: changes of those
    count. They are of the policies that nothing has in force as shipped, in shadow; those of the live AP act.
    """
    own = LIVE_FILES if options.live else FILES
    folder = State(options.state).dir / "demo" / "policies"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {source.name: source for source in (*POLICIES.glob("*.yaml"), *(POLICIES / "examples" / f for f in own))}
    for link in folder.iterdir():  # a registry may be reading them
        if wanted.get(link.name) != link.readlink():
            link.unlink()
        else:
            del wanted[link.name]
    for name, source in wanted.items():
        (folder / name).symlink_to(source)
    return {"policies": str(folder)}


def replay_sections(aps: int) -> list[tuple[str, str, dict]]:
    """One replay section per committed capture, the virtual APs dealt out over them."""
    captures = [CAPTURES / f"{name}.oalcap" for name in ORDER if (CAPTURES / f"{name}.oalcap").exists()]
    if not captures:
        raise PlatformError(
            f"there is no capture in {CAPTURES.relative_to(REPO)}; record them with `make -C lab captures`")
    shares = [aps // len(captures) + (i < aps % len(captures)) for i in range(len(captures))]
    return [("replay", c.stem.replace("-", "_"), {"file": c, "aps": n, "ap_prefix": f"ap-{c.stem}", "loop": 1})
            for c, n in zip(captures, shares) if n]


def kafka_section(platform, ap_id: str, site: str, ap_ids=()) -> tuple[str, str, dict]:
    """The exporter's Kafka sink with the certificate of `ap_id`, and the batch keys of it and of the APs that it plays.
    """
    options = platform.kafka.ap(ap_id, plays=1 + len(ap_ids))
    return ("kafka", "kafka", {
        "brokers": platform.kafka.bootstrap, "ca": options["ssl.ca.location"],
        "certificate": options["ssl.certificate.location"], "key": options["ssl.key.location"],
        "mac_keys": platform.kafka.mac_keys(ap_id, [ap_id, *ap_ids], site)
    })


def replayed_aps(sections) -> list[str]:
    """Names of the virtual APs of replay sections: the prefix itself where there is one, else PREFIX-0001, …"""
    return [
        f"{o['ap_prefix']}-{i + 1:04}" if o["aps"] > 1 else o["ap_prefix"] for _, _, o in sections
        for i in range(o["aps"])
    ]


class Replay:
    """The source of `make demo`: the exporter in replay, with an agent for each virtual AP if there is a push service.
    """

    def __init__(self, platform, folder: Path, aps: int, learning: bool = False):
        self.aps = aps
        sections = replay_sections(aps)
        self.ap_ids = replayed_aps(sections)
        agent = [loop.agent_section(platform, self.ap_ids), *control.replay_sections(folder)] if learning else []
        self.exporter = Exporter(
            folder, f"demo-{secrets.token_hex(3)}", "ap-demo", SITE,
            [*sections, *agent, kafka_section(platform, "ap-demo", SITE, self.ap_ids)])

    def start(self) -> None:
        self.exporter.start()

    def check(self) -> None:
        if self.exporter.process.poll() is not None:
            raise PlatformError(f"the exporter ended with {self.exporter.process.returncode}; see {self.exporter.log}")

    def stop(self) -> tuple[dict, int]:
        """(count at the source, batches let go)."""
        self.exporter.stop()
        try:
            return self.exporter.count(), self.exporter.let_go()
        finally:
            self.exporter.capture.unlink(missing_ok=True)


class Live:
    """The source of `make demo LIVE=1`: the lab's access point in real time."""

    aps = 1

    def __init__(self, platform, folder: Path, scenario: str, seconds: int | None):
        self.platform, self.folder, self.scenario, self.seconds = platform, folder, scenario, seconds
        self.process = None

    def start(self) -> None:
        options = self.platform.kafka.ap("ap-live", LIVE_SITE)
        command = [
            REPO / "lab" / "run", self.scenario, "--live", "--ap-id", "ap-live", "--brokers",
            self.platform.kafka.bootstrap, "--ca", options["ssl.ca.location"], "--certificate",
            options["ssl.certificate.location"], "--key", options["ssl.key.location"], "--mac-keys",
            self.platform.state.pki / "ap-live.mac-keys", "--sender-certificate", self.platform.state.pki / "lab.crt",
            "--sender-key", self.platform.state.pki / "lab.key", "--push-url", self.platform.push.ap_url,
            "--trusted-keys", self.platform.state.trusted_keys, "--rwnd", "enforce", "--mark", "enforce",
            "--out", self.folder
        ]
        if self.seconds:
            command += ["--duration", str(self.seconds)]
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL)

    def check(self) -> None:
        if self.process.poll() not in (None, 0):
            raise PlatformError(f"the lab ended with {self.process.returncode}; its messages stand above")

    def stop(self) -> tuple[dict, int]:
        if self.process.poll() is None and not self.seconds:
            self.process.terminate()
        self.process.wait(120)
        if self.process.returncode not in (0, -15, 143):
            raise PlatformError(f"the lab ended with {self.process.returncode}; its messages stand above")
        return count_capture(self.folder / f"{self.scenario}.oalcap"), let_go_of(self.folder
                                                                                 / f"{self.scenario}.exporter.log")


def line(s: dict, elapsed: float) -> str:
    """The summary of one moment, as lines of text."""
    def seconds(value):
        return "-" if value is None else f"{value:.1f} s"

    return "\n".join(
        (
            f"  after {elapsed:4.0f} s",
            (
                f"  access points      {s['aps']:>10,}     ticks missed {s['ticks_missed']:,}, ring drops"
                f" {s['ring_drops']:,}"
            ),
            (
                f"  batches (Kafka)    {s['batches']:>10,}     {s['batch_bytes'] / 1e6:.1f} MB before compression, lag"
                f" {s['lag_records']:,} records"
            ),
            f"  samples            {s['samples']:>10,}     "
            + ", ".join(f"{t} {s['tables'][t]:,}" for t in ("station", "station_ac", "queue", "channel", "flow")),
            f"  packets            {s['packets']:>10,}",
            (
                f"  labelled windows   {s['label_windows']:>10,}     {s['labels_complete']:,} complete,"
                f" {s['bad_windows']:,} Bad"
            ),
            (
                f"  congestion lost    {s['congestion_lost_pkts']:>10,}     by sequence space, of {s['offered_pkts']:,}"
                f" offered; the kernel's queues dropped {s['queue_drop_pkts']:,}, the MAC gave up"
                f" {s['mac_lost_pkts']:,}"
            ),
            f"  training items     {s['items']:>10,}",
            (
                f"  rows (ClickHouse)  {s['rows']:>10,}     sample → row p50 {seconds(s['latency_p50_s'])}, p99"
                f" {seconds(s['latency_p99_s'])}"
            ),
            (
                f"  gaps {s['gaps_missing']:,} missing, {s['gaps_duplicate']:,} duplicate; late {s['late']:,}; dead"
                f" letters {s['dead_letters']:,}"
            ),
        )
    )


def example_query(platform) -> str:
    """A shell command that asks a question as the analyst."""
    analyst = platform.clickhouse.password_file("analyst")
    return (
        f"curl -s -u \"analyst:$(cat {analyst})\" '{platform.clickhouse.http_url}' -d 'SELECT * FROM"
        " oal.v_worst_aps(within_s = 60) FORMAT PrettyCompact'"
    )


def check_dashboards(platform, since_us: int) -> list[str]:
    """Every query of observe/grafana as user grafana, over the time of the demo; what is wrong with them."""
    command = [
        grafana.OBSERVE / "check", "--url", platform.clickhouse.http_url, "--password-file",
        platform.clickhouse.password_file("grafana"), "--from",
        str(since_us // 1_000_000)
    ]
    done = subprocess.run([str(c) for c in command])
    return [] if done.returncode == 0 else [
        "a query of a dashboard returned nothing or failed; the table above says which"
    ]


def addresses(platform) -> str:
    analyst = platform.clickhouse.password_file("analyst")
    url = platform.clickhouse.http_url
    return "\n".join(
        (
            (
                f"  Flink        {platform.flink.rest_url}   with a certificate: `platform/local/oal-local cert"
                " operator --p12` makes one for the browser"
            ),
            f"  ClickHouse   {url}/play   user analyst, password in {analyst}",
            f"  SQL          {example_query(platform)}",
            f"  MLflow       {platform.mlflow.url}   user admin, password in {platform.mlflow.password_file()}",
            (
                f"  Grafana      {grafana.url(platform.settings)}   user admin, password in"
                f" {grafana.password_file(platform.state)}"
                if grafana.installed()
                else f"  Grafana      {grafana.HOW_TO_GET}"
            ),
            f"  push         {platform.push.admin_url}   token in {platform.push.token_file}",
            f"  Kafka        {platform.kafka.bootstrap} (mTLS, certificates in {platform.state.pki})",
            f"  logs         {platform.state.logs}",
            f"  policies     {platform.settings.policies}: change one, raise its version",
            control.commands(platform),
        )
    )


def drain(stages: Stages, source: dict) -> dict:
    """Wait until what the source made has become rows; returns the last snapshot, complete or not."""
    deadline = time.monotonic() + DRAIN_SECONDS
    while True:
        s = stages.read()
        if (s["batches"] >= source["batches"]
                and s["rows"] >= sum(source["rows"].values())) or time.monotonic() > deadline:
            return s
        time.sleep(0.5)


def settled(learning) -> dict:
    """The loop's last figures. Predictions of the last four seconds never meet their item: the APs have gone."""
    deadline = time.monotonic() + 10
    while True:
        s = learning.read()
        if s["judged"] or time.monotonic() > deadline:
            return s
        time.sleep(0.5)


def run(platform, options) -> int:
    """The demo on a platform that is up."""
    since_us = int(time.time() * 1e6)
    stages = Stages(platform, since_us)
    folder = platform.state.dir / "demo"
    folder.mkdir(exist_ok=True)
    approver = Approver(platform).start()
    loop.seed(platform)
    learning = loop.Loop(platform, since_us)
    acting = control.Control(platform, since_us)

    compared = turns.Turns(platform, "ap-live", TURN_SECONDS, options.once) if options.live else None

    def summary(stage: dict, learned: dict, acted: dict) -> str:
        parts = [line(stage, time.monotonic() - started), loop.lines(learned), control.lines(acted)]
        if compared:
            parts.append(turns.lines(turns.table(compared.pairs()), TURN_SECONDS))
        return "\n".join(parts)

    source = Live(platform, folder, options.scenario, options.once) if options.live else Replay(
        platform, folder, options.aps, learning=True)
    source.start()
    if compared:
        compared.start()
    print(f"\n{source.aps} access point{'s' * (source.aps > 1)} streaming. "
          + ("Ctrl-C ends the demo; `make down` stops the platform." if not options.once else f"For {options.once} s."))
    print(addresses(platform) + "\n")
    started, tall = time.monotonic(), 0
    try:
        while not options.once or time.monotonic() - started < options.once:
            time.sleep(2 if sys.stdout.isatty() else 10)
            source.check()
            text = summary(stages.read(), learning.read(), acting.read())
            if sys.stdout.isatty() and tall:
                print(f"\033[{tall}A\033[J", end="")
            for said in approver.lines():
                print(said)
            tall = text.count("\n") + 1
            print(text, flush=True)
    except KeyboardInterrupt:
        print("\nstopping the source …")
    finally:
        counted, let_go = source.stop()
        approver.stop()
        if compared:
            compared.stop()
    print("the source has stopped; waiting until everything that it made is a row …", flush=True)
    last = drain(stages, counted)
    stages.close()
    wrong = verdict(last, counted, source.aps, let_go)
    learned = settled(learning)
    acted = acting.read()
    wrong += loop.verdict(learned, source.aps)
    wrong += control.verdict(acted, source.aps, options.live, in_turns=compared is not None)
    if options.check_dashboards or (options.once or 0) >= CHECKED_SECONDS:
        wrong += check_dashboards(platform, since_us)
    SUMMARY.parent.mkdir(exist_ok=True)
    SUMMARY.write_text(
        json.dumps(
            {
                "seconds": round(time.monotonic() - started, 1), "aps": source.aps, "live": options.live,
                "source": counted, "stages": last, "loop": learned, "control": acted,
                "turns": turns.table(compared.pairs()) if compared else None, "let_go": let_go, "wrong": wrong
            }, indent=1) + "\n")
    print(summary(last, learned, acted))
    print(f"  counted at the source: {counted['batches']:,} batches, {sum(counted['rows'].values()):,} rows")
    for text in wrong:
        print(f"demo: WRONG: {text}", file=sys.stderr)
    print(
        f"demo: {'every stage moved and nothing was lost' if not wrong else f'{len(wrong)} things are wrong'};"
        f" {SUMMARY.relative_to(REPO)}"
    )
    return 1 if wrong else 0
