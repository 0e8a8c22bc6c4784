#!/usr/bin/env python3
"""The daemon's agent against a real HTTPS service with client certificates (push_service.py): what it applies,
refuses, keeps and tells.

Each function named t_… is a test, its docstring the sentence it proves. usage: tests/agent.py [BINARY COUNT_MALLOC_SO
[NAME…]]
Without arguments the built daemon is tested, and the one with sanitizers. Finds the Python of schema/requirements.txt
by itself. Prints "ok …" / "not ok …" lines and "# N passed, N failed".
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
VENV = subprocess.run(
    ["bash", TOP / "platform" / "setup" / "venv", TOP / "schema" / "requirements.txt"],
    stdout=subprocess.PIPE,
    text=True,
    check=True,
).stdout.strip()
if sys.prefix != VENV:
    os.execv(f"{VENV}/bin/python", [f"{VENV}/bin/python", *sys.argv])

import outside  # noqa: E402
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: E402
from outside import Allocations, Daemon, Folder, sh, until  # noqa: E402
from push_service import (  # noqa: E402
    OF_HOSTS,
    ROOT,
    Authority,
    Maker,
    Service,
    bundles,
    etag,
    grant,
    keys,
    neighbour,
    number,
    policies,
)
from sentences import Busy, Sum, run_tests, tests_of  # noqa: E402

AT_ONCE = 8  # they mostly wait
CAPTURE = ROOT / "lab" / "captures" / "congested.oalcap"


class Site:
    """Certificates, keys, folders of a test, and the exporter's configuration there."""

    def __init__(self, folder: Path):
        self.folder, self.maker, self.authority = folder, Maker(), Authority(folder)
        (folder / "state").mkdir()
        self.maker.trusted(folder / "trusted")

    def aps(self, n: int) -> list[str]:
        names = [f"ap-test-{i + 1:04}" for i in range(n)] if n > 1 else ["ap-test"]
        for name in names:
            self.authority.issue(name)
        return names

    def config(
        self, port: int, aps: int = 1, state: bool = True, cert: str = "%s", live: bool = False, **options
    ) -> str:
        agent = {
            "url": f"https://127.0.0.1:{port}/",
            "ca": self.authority.path,
            "cert": f"{self.folder}/{cert}.pem",
            "key": f"{self.folder}/{cert}.key",
            "trusted_keys": self.folder / "trusted",
            "wait_s": 20,
            "retry_max_s": 1,
            "store_interval_s": 0,
            **({"state_dir": self.folder / "state"} if state else {}),
            **options,
        }
        collector = "qdisc\n\toption interface lo" if live else f"replay\n\toption file {CAPTURE}\n\toption aps {aps}"
        return f"@exporter\n\toption site 'hall-1'\nconfig {collector}\nconfig agent\n" + "".join(
            f"\toption {k} '{v}'\n" for k, v in agent.items()
        )


@contextmanager
def running(aps: int = 1, **options):
    """(site, service, daemon, names of APs)"""
    with Folder() as folder:
        site = Site(folder)
        names, service = site.aps(aps), Service(site.authority)
        try:
            with Daemon(folder, site.config(service.port, aps, **options)) as daemon:
                yield site, service, daemon, names
        finally:
            service.stop()


def agent(daemon: Daemon) -> dict:
    return daemon.answer()["agent"]


def in_force(daemon: Daemon, ap: str) -> str | None:
    return next(a["bundle"] for a in agent(daemon)["aps"] if a["ap_id"] == ap)


def applied(daemon: Daemon, ap: str, signed: bytes) -> None:
    until(
        lambda: in_force(daemon, ap) == etag(signed),
        f"{ap} applies {etag(signed)[:8]}; {daemon.log.read_text()[-500:]}",
    )


def t_apply_and_predict():
    """a desired bundle is pulled, put in force, reported, and predicted with at every decision instant"""
    with running() as (site, service, daemon, (ap,)):
        until(lambda: service.polls, "it asks")
        headers = service.polls[0][1]
        assert (
            headers["OAL-Site"] == "hall-1"
            and headers["Prefer"] == "wait=20"
            and headers["User-Agent"].startswith("ap-exporter/")
            and "If-None-Match" not in headers
        ), headers
        first, second = site.maker.good(version=7), site.maker.good(version=8, source="online", threshold=2000)
        service.want(ap, first)
        applied(daemon, ap, first)
        until(lambda: len(service.told(ap)) == 1, "it reports")
        until(lambda: agent(daemon)["decisions"] >= 8, "it decides")
        service.want(ap, second)
        applied(daemon, ap, second)
        seen = agent(daemon)["decisions"]
        until(lambda: agent(daemon)["decisions"] >= seen + 8, "and goes on")
        until(
            lambda: any(h.get("If-None-Match") == f'"{etag(second)}"' for _, h in service.polls), "it names what it has"
        )
        assert service.told(ap) == [("applied", "none", etag(first)), ("applied", "none", etag(second))], service.told(
            ap
        )
        status = agent(daemon)
        (mine,) = status["aps"]
        assert (
            (mine["version"], mine["source"], mine["model"], mine["predicts"]) == (8, "online", "congestion", True)
            and status["applied"] == 2
            and status["eval_max_ns"] > 0
        ), status
        report = service.reports[-1][1]
        assert (
            report["boot_id"].isdigit()
            and report["serial"] == mine["serial"]
            and abs(report["ts_us"] / 1e6 - time.time()) < 60
        ), report
        assert daemon.stop() == 0
        rows = daemon.rows("decision")
        assert [r["bundle"] for r in rows] == sorted(
            (r["bundle"] for r in rows), key=[number(first), number(second)].index
        ) and {r["version"] for r in rows} == {7, 8}
        instants = [r["instant_us"] for r in rows]
        assert (
            instants == list(range(instants[0], instants[0] + 100_000 * len(rows), 100_000))
            and instants[0] % 100_000 == 0
        ), "an instant is missing"
        assert all(
            0 <= r["ts_us"] - r["instant_us"] < 1_000_000 and r["eval_ns"] > 0 and 0 <= r["features_hash"] < 2**63
            for r in rows
        )
        assert {(r["leaf"], r["class"], r["confidence_permille"], r["congested_permille"]) for r in rows} <= {
            (1, 0, 900, 0),
            (2, 2, 700, 900),
        }, rows[:3]
        states = [
            (r["bundle"], r["state"], r["reason"], r["version"], r["source"], r["bytes"])
            for r in daemon.rows("bundle_status")
        ]
        assert states == [(number(first), 1, 0, 7, 1, len(first)), (number(second), 1, 0, 8, 2, len(second))], states


def bad_bundles(maker: Maker, old: bytes) -> dict:
    """Per reason a function that gives a bundle to be refused for it."""
    def flip(i):
        def change(signed):
            b = bytearray(signed)
            b[i] ^= 1
            return bytes(b)
        return change
    stranger = Ed25519PrivateKey.from_private_bytes(bytes([9] * 32))

    return {
        "oversized": lambda: maker.good() + bytes(300_000),
        "malformed": lambda: maker.good()[:-70],
        "unsigned": lambda: bundles.write(bundles.SIGNED, {"payload": maker.payload(), "key_id": 0, "signature": b""}),
        "unknown_key": lambda: maker.sign(maker.payload(), stranger),
        "bad_signature": lambda: flip(-1)(maker.good()),
        "unsupported_format": lambda: maker.changed(lambda v: v.update(format=2)),
        "wrong_target": lambda: maker.good(target="ap/another"),
        "replayed": lambda: old,
        "bad_program": lambda: maker.changed(lambda v: v["program"]["op"].__setitem__(0, 77)),
        "bad_tree": lambda: maker.changed(lambda v: v["tree"]["right"].__setitem__(0, 1)),
        "bad_policy": lambda: maker.changed(lambda v: v["policy"].update(mode=2)),  # without a name
        "feature_mismatch": lambda: maker.changed(lambda v: v["tree"].update(feature_hash=5)),
        "golden_mismatch": lambda: maker.changed(
            lambda v: v["golden"]["leaf"].__setitem__(0, 3 - v["golden"]["leaf"][0])
        ),
    }


def t_refuse_bad_bundles():
    """a bundle of each bad kind is refused with its reason, told, and the good one goes on deciding, over a restart
    too"""
    names_of = list(bad_bundles(Maker(), b""))
    with running(len(names_of)) as (site, service, daemon, names):
        old, good = site.maker.good(), site.maker.good()
        bad = {reason: make() for reason, make in bad_bundles(site.maker, old).items()}
        for ap in names:
            service.want(ap, good)
        for ap in names:
            applied(daemon, ap, good)
        for ap, reason in zip(names, names_of):
            service.want(ap, bad[reason])
        until(
            lambda: all(agent(daemon)["rejects"][reason] for reason in names_of),
            f"all are refused; {agent(daemon)['rejects'] if daemon.status() else ''}",
        )
        for ap, reason in zip(names, names_of):
            until(
                lambda: any(s[:2] == ("rejected", reason) for s in service.told(ap)),
                f"{ap} tells {reason}: {service.told(ap)}",
            )
        assert {in_force(daemon, ap) for ap in names} == {etag(good)}
        # What it refused it has told, so it is not sent again; where the bytes do not say who they are, the ETag does.
        assert all(n <= 2 for n in agent(daemon)["rejects"].values()), agent(daemon)["rejects"]
        decided = agent(daemon)["decisions"]
        until(lambda: agent(daemon)["decisions"] > decided + 5 * len(names), "they go on deciding")
        newer = site.maker.good()
        for ap in names:
            service.want(ap, newer)
        for ap in names:
            applied(daemon, ap, newer)
        assert daemon.stop() == 0
        codes = {r["reason"] for r in daemon.rows("bundle_status") if r["state"] == 2}
        assert len(codes) == len(names_of), codes
        assert all((site.folder / "state" / f"{ap}.bundle").read_bytes() == newer for ap in names)


def chunks_without_end(handler):
    """The body of an answer, until the other side has enough."""
    try:
        for _ in range(100_000):
            handler.wfile.write(b"1000\r\n" + bytes(4096) + b"\r\n")
    except OSError:
        pass
    handler.close_connection = True


def t_broken_transfers():
    """bodies cut short, chunked without end, or slow are no bundles; what is in force stays, and a good answer
    ends it"""
    with running(3) as (site, service, daemon, names):
        good, newer = site.maker.good(), site.maker.good(version=2)
        for ap in names:
            service.want(ap, good)
        for ap in names:
            applied(daemon, ap, good)
        hits = dict.fromkeys(names, 0)

        def head(handler, **headers):
            hits[handler.path.split("/")[3]] += 1
            handler.send_response(200)
            for k, v in headers.items():
                handler.send_header(k.replace("_", "-"), v)
            handler.end_headers()

        def cut(handler):
            head(handler, Content_Length=str(len(newer)), ETag=f'"{etag(newer)}"')
            handler.wfile.write(newer[:100])
            handler.close_connection = True
            handler.connection.close()

        def endless(handler):
            head(handler, Transfer_Encoding="chunked", ETag='"x"')
            chunks_without_end(handler)

        def slow(handler):
            head(handler, Content_Length=str(len(newer)), ETag=f'"{etag(newer)}"')
            for byte in newer[:20]:
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
                time.sleep(0.1)  # it is the slow one
            handler.close_connection = True
            handler.connection.close()
        for ap, script in zip(names, (cut, endless, slow)):
            service.script(ap, script)
        until(lambda: all(n >= 2 for n in hits.values()), f"each comes again: {hits}")
        assert [in_force(daemon, ap) for ap in names] == [etag(good)] * 3
        rejects = agent(daemon)["rejects"]
        assert rejects["oversized"] and sum(rejects.values()) == rejects["oversized"], rejects
        for ap in names:
            service.want(ap, newer)
            service.script(ap, None)
        for ap in names:
            applied(daemon, ap, newer)
        assert daemon.stop() == 0


def t_service_restarts():
    """when the service goes away, models stay in force; when it is back, news arrives, and reports that waited"""
    with Folder() as folder:
        site = Site(folder)
        (ap,), service = site.aps(1), Service(site.authority)
        first, second = site.maker.good(), site.maker.good()
        with Daemon(folder, site.config(service.port)) as daemon:
            service.refuse_reports = True
            service.want(ap, first)
            applied(daemon, ap, first)
            until(lambda: agent(daemon)["report_errors"], "the report fails")
            service.stop()
            until(lambda: agent(daemon)["poll_errors"] >= 3, "polls fail")
            decided = agent(daemon)["decisions"]
            until(lambda: agent(daemon)["decisions"] > decided + 5, "it goes on deciding")
            assert agent(daemon)["aps"][0]["last_error"], agent(daemon)
            again = Service(site.authority, service.port)
            try:
                until(
                    lambda: again.told(ap) == [("applied", "none", etag(first))],
                    f"the report that waited: {again.told(ap)}",
                )
                again.want(ap, second)
                applied(daemon, ap, second)
                until(lambda: len(again.told(ap)) == 2, "the next report")
                assert daemon.stop() == 0
            finally:
                again.stop()


def t_nothing_desired_and_busy():
    """204 keeps what is in force; 429 and 503 are waited out as asked"""
    with running() as (site, service, daemon, (ap,)):
        good = site.maker.good()
        service.want(ap, good)
        applied(daemon, ap, good)
        times = []
        service.script(ap, lambda h: (times.append(time.monotonic()), h.reply(204))[1])
        until(lambda: len(times) >= 3, "it asks again")
        assert (
            min(b - a for a, b in zip(times, times[1:])) > 0.4
        ), times  # an answer that did not wait does not make it ask at once
        times.clear()
        service.script(
            ap,
            lambda h: (
                times.append(time.monotonic()),
                h.reply(429 if len(times) % 2 else 503, {"Retry-After": "2"}, b"too many"),
            )[1],
        )
        until(lambda: len(times) >= 3, "it asks again")
        assert min(b - a for a, b in zip(times, times[1:])) >= 1.9, times
        assert in_force(daemon, ap) == etag(good) and "answered" in agent(daemon)["aps"][0]["last_error"], agent(daemon)
        assert daemon.stop() == 0


def t_wrong_certificates():
    """another AP's certificate is refused by the service, another authority's service by the AP; both are said, and
    nothing is applied"""
    with Folder() as folder:
        site = Site(folder)
        (ap,), service = site.aps(1), Service(site.authority)
        site.authority.issue("stranger")
        other = Service(Authority(folder, "other-ca"), certificate="impostor")
        try:
            for port, cert, words in ((service.port, "stranger", "answered 403"), (other.port, "%s", "certificate")):
                for s in (service, other):
                    s.want(ap, site.maker.good())
                with Daemon(folder, site.config(port, cert=cert)) as daemon:
                    until(lambda: agent(daemon)["poll_errors"] >= 2, "polls fail")
                    until(
                        lambda: words in agent(daemon)["aps"][0]["last_error"], f"{words} is said"
                    )  # a question about neighbours fails too, in other words
                    assert in_force(daemon, ap) is None and not agent(daemon)["bundles"] and daemon.stop() == 0
        finally:
            service.stop()
            other.stop()


def t_rollback_and_flapping():
    """a service that goes to and fro between two bundles is followed, as far as the one in force allows"""
    with running() as (site, service, daemon, (ap,)):
        first = site.maker.good()
        second = site.maker.good(rollback=[bytes.fromhex(etag(first))])
        for wanted in (first, second, first, second, first):
            service.want(ap, wanted)
            applied(daemon, ap, wanted)
        for i in range(40):
            service.want(ap, (second, first)[i % 2])
            time.sleep(0.01)  # faster than the AP may follow
        last = site.maker.good()
        service.want(ap, last)
        applied(daemon, ap, last)
        assert agent(daemon)["bundles"] < 30 and not any(agent(daemon)["rejects"].values()), agent(daemon)
        service.want(ap, first)  # the last one allows no way back
        until(lambda: agent(daemon)["rejects"]["replayed"], "it is refused")
        assert in_force(daemon, ap) == etag(last) and daemon.stop() == 0


def t_activation_time():
    """a bundle with an activation time waits for it; a newer one takes its place; the one in force sent again ends the
    wait"""
    with running(3) as (site, service, daemon, names):
        good = site.maker.good()
        for ap in names:
            service.want(ap, good)
        for ap in names:
            applied(daemon, ap, good)
        soon, later = site.maker.good(version=2), site.maker.good(version=3)
        at = time.time() + 2.5
        service.want(names[0], soon, OAL_Activate_At=str(int(at * 1e6)))
        for ap in names[1:]:
            service.want(ap, later, OAL_Activate_At=str(int((time.time() + 3600) * 1e6)))
        def wait() -> bool:
            return all(("waiting", "none", etag(b)) in service.told(ap) for ap, b in zip(names, (soon, later, later)))

        until(lambda: wait() or time.time() > at, "they wait")
        if not wait():
            raise Busy("2.5 s were too few for three polls")
        newest = site.maker.good(version=4)
        service.want(names[1], newest)
        applied(daemon, names[1], newest)
        # The tick thread says what is in force, the agent's what waits: it may say so a moment later.
        until(lambda: "waiting" not in agent(daemon)["aps"][1], "nothing waits any more")
        assert agent(daemon)["aps"][2]["waiting"]["bundle"] == etag(later)
        service.want(names[2], good)  # which it has: a service that does without the tag sends it all the same
        service.script(names[2], lambda h: h.reply(200, {"ETag": f'"{etag(good)}"'}, good))
        until(lambda: service.told(names[2])[-1] == ("applied", "none", etag(good)), "it stays with the one in force")
        until(lambda: "waiting" not in agent(daemon)["aps"][2], "nothing waits any more")
        assert in_force(daemon, names[0]) == etag(good) or time.time() > at  # asked first: then it was before
        applied(daemon, names[0], soon)
        assert time.time() >= at
        if time.time() >= at + 5:
            raise Busy("too long after its time to say that it was activated then")
        service.want(names[0], later, OAL_Activate_At=str(int((time.time() + 3 * 86400) * 1e6)))
        applied(daemon, names[0], later)  # a clock is wrong
        assert "more than a day" in daemon.log.read_text()
        assert daemon.stop() == 0
        mine = [(r["version"], r["state"]) for r in daemon.rows("bundle_status") if r["ap_id"] == names[0]]
        # A poll that was cut off on a busy machine brings the one that waits once more.
        assert [state for state, _ in groupby(mine)] == [(1, 1), (2, 4), (2, 1), (3, 1)], mine


def t_another_program():
    """a bundle with another feature program is in force where a batch begins; before that the earlier one decides"""
    with running() as (site, service, daemon, (ap,)):
        first, second, third = (
            site.maker.good(version=1),
            site.maker.good(version=2, features=5),
            site.maker.good(version=3),
        )
        for wanted in (first, second, third):
            service.want(ap, wanted)
            applied(daemon, ap, wanted)
            seen = agent(daemon)["decisions"]
            until(lambda: agent(daemon)["decisions"] >= seen + 8, "it decides")
        assert daemon.stop() == 0
        rows = daemon.rows("decision")
        assert [
            v for v, before in zip([r["version"] for r in rows], [0] + [r["version"] for r in rows]) if v != before
        ] == [1, 2, 3]
        instants = [r["instant_us"] for r in rows]
        assert instants == list(range(instants[0], instants[0] + 100_000 * len(rows), 100_000)), "an instant is missing"
        assert all(r["features_missing"] <= 5 for r in rows if r["version"] == 2)


def t_policy_off():
    """a bundle whose policy is off is applied and not predicted with"""
    with running() as (site, service, daemon, (ap,)):
        off = site.maker.good(policy=policies.Policy(policies.OFF))
        service.want(ap, off)
        applied(daemon, ap, off)
        seen = agent(daemon)["undecided"]
        until(lambda: agent(daemon)["undecided"] > seen + 3, "instants go by")
        assert agent(daemon)["decisions"] == 0 and agent(daemon)["aps"][0]["predicts"] is False and daemon.stop() == 0


def t_policy_of_hosts():
    """a bundle about destinations is nothing to an access point: it is held, decides nothing, and its values are no
    windows"""
    with Folder() as folder:
        site = Site(folder)
        (ap,), service = site.aps(1), Service(site.authority)
        try:
            with Daemon(folder, site.config(service.port, live=True) + "config rwnd\n") as daemon:
                signed = site.maker.good(of_policy="cc-select", law=OF_HOSTS, policy=policies.make("x", 1, 2))
                service.want_others(ap, **{"cc-select": signed})
                until(lambda: policies_of(daemon).get("cc-select") == etag(signed), "it has it")
                before = daemon.answer()["decisions"]
                until(lambda: daemon.answer()["decisions"] > before + 10, "instants go by")
                assert daemon.answer()["control"]["policies"] == {"cc-select": "off"}
                assert agent(daemon)["decisions"] == 0 and daemon.stop() == 0
                assert daemon.rows("decision") == daemon.rows("action") == []
        finally:
            service.stop()


def t_reboot():
    """after a kill the bundle on flash is in force before the service is reached; a damaged or foreign file is ignored
    and said"""
    with Folder() as folder:
        site = Site(folder)
        (ap,), service = site.aps(1), Service(site.authority)
        file = folder / "state" / f"{ap}.bundle"
        first, second = site.maker.good(), site.maker.good(version=2)
        try:
            with Daemon(folder, site.config(service.port)) as daemon:
                service.want(ap, first)
                applied(daemon, ap, first)
                until(lambda: file.exists() and file.read_bytes() == first, "it is on flash")
                assert oct(file.stat().st_mode)[-3:] == "600"
                daemon.process.kill()
            service.stop()
            with Daemon(folder, site.config(service.port)) as daemon:
                applied(daemon, ap, first)
                until(lambda: agent(daemon)["restored"] == 1, "it came from flash")
                until(lambda: agent(daemon)["decisions"] >= 3, "it decides")
                service = Service(site.authority, service.port)
                until(lambda: service.told(ap) == [("restored", "none", etag(first))], "it reports")
                service.want(ap, site.maker.good(serial=1))  # the floor outlives the restart
                until(lambda: agent(daemon)["rejects"]["replayed"], "an older one is refused")
                assert daemon.stop() == 0
            service.desired.clear()
            for damage, reason in (
                (first[:50], "malformed"),
                (first[:-1] + bytes([first[-1] ^ 1]), "bad_signature"),
                (bytes(300_000), None),
                (site.maker.good(target="ap/x"), "wrong_target"),
            ):
                file.write_bytes(damage)
                with Daemon(folder, site.config(service.port)) as daemon:
                    assert in_force(daemon, ap) is None
                    until(lambda: agent(daemon)["polls"], "it asks")
                    s = agent(daemon)
                    assert (
                        (s["rejects"][reason] == 1 if reason else s["store_errors"] == 1)
                        and s["aps"][0]["last_error"]
                        and "warning" in daemon.log.read_text()
                    ), s
                    if reason == "bad_signature":
                        service.want(ap, second)
                        applied(daemon, ap, second)
                        until(lambda: file.read_bytes() == second, "a good one takes its place")
                    assert daemon.stop() == 0
                service.desired.clear()
        finally:
            service.stop()


def t_flash_wear():
    """flash is written at most once an interval, and at the end"""
    with running(store_interval_s=3600) as (site, service, daemon, (ap,)):
        file = site.folder / "state" / f"{ap}.bundle"
        made = [site.maker.good() for _ in range(4)]
        for signed in made:
            service.want(ap, signed)
            applied(daemon, ap, signed)
        until(lambda: agent(daemon)["applied"] == 4, "all are applied")
        assert agent(daemon)["stores"] == 1 and file.read_bytes() == made[0]
        assert daemon.stop() == 0
        assert file.read_bytes() == made[-1]


def t_flash_gone():
    """a folder that cannot be written is refused by check-config, and counted when it happens later"""
    with running() as (site, service, daemon, (ap,)):
        first, second = site.maker.good(), site.maker.good()
        service.want(ap, first)
        applied(daemon, ap, first)
        until(lambda: agent(daemon)["stores"] == 1, "it is kept")
        (site.folder / "state").rename(site.folder / "away")
        service.want(ap, second)
        applied(daemon, ap, second)
        until(lambda: agent(daemon)["store_errors"], "it is counted")
        assert "cannot keep the bundle" in daemon.log.read_text()
        done = subprocess.run(
            [str(outside.BINARY), "check-config", "-c", str(daemon.config)], capture_output=True, text=True
        )
        assert done.returncode == 1 and "state_dir" in done.stderr, done
        assert daemon.stop() == 0


def t_flash_full():
    """flash without room: what is kept stays whole and is what the next start has, the failure is counted and said, the
    agent goes on; with room again the newest is kept"""
    with running(store_interval_s=1) as (site, service, daemon, (ap,)):
        state = site.folder / "state"
        kept, second, third = (site.maker.good(large=n == 1) for n in range(3))
        service.want(ap, kept)
        applied(daemon, ap, kept)
        until(lambda: agent(daemon)["stores"] == 1, "it is kept")
        mine = (state / f"{ap}.bundle").stat()
        sh(f"mount -t tmpfs -o size=8k,uid={mine.st_uid},gid={mine.st_gid} tmpfs {state}")
        try:
            (state / f"{ap}.bundle").write_bytes(kept)
            os.chown(state / f"{ap}.bundle", mine.st_uid, mine.st_gid)
            (state / "full").write_bytes(bytes(8192 - 4096))
            service.want(ap, second)
            applied(daemon, ap, second)
            until(lambda: agent(daemon)["store_errors"], "it is counted")
            assert re.search(r"cannot keep the bundle.*No space left", daemon.log.read_text())
            assert (state / f"{ap}.bundle").read_bytes() == kept and sorted(f.name for f in state.iterdir()) == [
                f"{ap}.bundle", "full"
            ], "nothing half written is left"
            decisions = agent(daemon)["decisions"]
            until(lambda: agent(daemon)["decisions"] > decisions + 5, "it goes on")
            (state / "full").unlink()
            service.want(ap, third)
            until(lambda: (state / f"{ap}.bundle").read_bytes() == third, "there is room again")
            assert daemon.stop() == 0
        finally:
            sh(f"umount {state}")


def t_reload_and_key_rotation():
    """SIGHUP reads the trusted keys again and keeps the bundle; a broken keys file is refused and the old keys stay"""
    with running() as (site, service, daemon, (ap,)):
        first = site.maker.good()
        service.want(ap, first)
        applied(daemon, ap, first)
        newcomer = Ed25519PrivateKey.from_private_bytes(bytes([5] * 32))
        second = site.maker.sign(site.maker.payload(), newcomer)
        service.want(ap, second)
        until(lambda: agent(daemon)["rejects"]["unknown_key"], "its key is not known")
        trusted = site.folder / "trusted"
        lines = trusted.read_text()
        trusted.write_text("ed25519 nonsense x\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: daemon.status()["reloads_refused"] == 1, "a broken file is refused")
        assert in_force(daemon, ap) == etag(first)
        trusted.write_text(lines + keys.public_line(newcomer, "next", grant("registry")) + "\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: daemon.status()["reloads"] == 1, "the good one is taken")
        applied(daemon, ap, second)
        assert agent(daemon)["restored"] == 1, "it began with the bundle that was in force"
        assert daemon.stop() == 0


def t_who_may_sign_what():
    """a bundle is used only if its key may sign it, and a file of older lines leaves the AP without one until SIGHUP
    brings roles"""
    with running() as (site, service, daemon, (ap,)):
        fleet, online = (site.maker.payload(source=source) for source in ("registry", "online"))
        for forged in site.maker.sign(fleet, site.maker.trainer), site.maker.sign(online, site.maker.key):
            service.want(ap, forged)
            wanted = "rejected", "not_permitted", etag(forged)
            until(lambda: wanted in service.told(ap), "its key may not sign that")
        trusted = site.folder / "trusted"
        roles = trusted.read_text()
        trusted.write_text(keys.public_line(site.maker.key, "test") + "\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: daemon.status()["reloads"] == 1, "an older file is taken")
        good = site.maker.good()
        service.want(ap, good)
        wanted = "rejected", "not_permitted", etag(good)
        until(lambda: wanted in service.told(ap), "a key of an older line may sign nothing")
        said = agent(daemon)["aps"][0]["last_error"]
        assert "its line lacks role=registry" in said and in_force(daemon, ap) is None, (said, in_force(daemon, ap))
        trusted.write_text(roles)
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: daemon.status()["reloads"] == 2, "one with roles is taken")
        good = site.maker.good()
        service.want(ap, good)
        applied(daemon, ap, good)
        assert daemon.stop() == 0


def policies_of(daemon: Daemon) -> dict[str, str]:
    """Policy → hash of its bundle in force at the one AP."""
    return {name: p["bundle"] for name, p in agent(daemon)["aps"][0]["policies"].items()}


def holds(daemon: Daemon, **bundles_of: bytes) -> None:
    """Until the AP has these policies in force, and no other. `fair` is rwnd-fair."""
    want = {name.replace("fair", "rwnd-fair"): etag(signed) for name, signed in bundles_of.items()}
    until(lambda: policies_of(daemon) == want, f"it has {want}; {daemon.log.read_text()[-500:]}")


def others_on_flash(site: Site) -> dict[str, bytes]:
    return {p.name.removeprefix("ap-test@"): p.read_bytes() for p in (site.folder / "state").glob("*@*")}


def t_several_policies():
    """policies come one after the other, each to its place; one that is no longer wanted is given up, and its file
    goes; one beyond the fourth is refused until another goes"""
    with running() as (site, service, daemon, (ap,)):
        make = {name: site.maker.good(of_policy=name) for name in ("a1", "b2", "c3", "d4")}
        service.want_others(ap, b2=make["b2"])
        holds(daemon, b2=make["b2"])
        assert agent(daemon)["aps"][0]["bundle"] is None
        until(lambda: any(h.get("OAL-Policies") == "b2" for _, h in service.polls), "it names what it has")
        fair, newer = site.maker.good(), site.maker.good(of_policy="b2", version=2)
        service.want(ap, fair)
        holds(daemon, fair=fair, b2=make["b2"])
        service.want_others(ap, b2=newer, a1=make["a1"], c3=make["c3"])
        holds(daemon, fair=fair, b2=newer, a1=make["a1"], c3=make["c3"])
        assert service.polls[0][1]["OAL-Policies"] == "" and "If-None-Match" not in service.polls[0][1]

        def told_all():
            h = service.polls[-1][1]
            pairs = dict(zip(h["OAL-Policies"].split(), h["If-None-Match"].split(", ")))
            held = {name: f'"{tag}"' for name, tag in policies_of(daemon).items()}
            return pairs == held and h["OAL-Policies"].startswith("rwnd")
        until(told_all, "it names all, rwnd-fair first")
        until(lambda: set(others_on_flash(site)) == {"a1.bundle", "b2.bundle", "c3.bundle"}, "they are on flash")
        decided = agent(daemon)["decisions"]
        until(lambda: agent(daemon)["decisions"] > decided + 20, "they decide")

        service.want_others(ap, a1=make["a1"], b2=newer, c3=make["c3"], d4=make["d4"])
        until(lambda: agent(daemon)["rejects"]["no_memory"] == 1, "a fifth is refused")
        until(lambda: service.told(ap)[-1] == ("rejected", "no_memory", etag(make["d4"])), "and told")
        assert service.reports[-1][1]["policy"] == "d4" and "no place for policy d4" in daemon.log.read_text()
        last = site.maker.good(of_policy="d4", version=2)
        service.want_others(ap, b2=newer, c3=make["c3"], d4=last)  # one goes, in the answer that brings another
        holds(daemon, fair=fair, b2=newer, c3=make["c3"], d4=last)
        assert agent(daemon)["given_up"] == 1
        service.want_others(ap)
        holds(daemon, fair=fair)
        until(lambda: not others_on_flash(site), "their files are gone")
        status = agent(daemon)
        assert status["given_up"] == 4 and status["aps"][0]["bundle"] == etag(fair), status
        old = site.maker.good(of_policy="b2", serial=1)  # what was given up sets no floor
        service.want_others(ap, b2=old)
        holds(daemon, fair=fair, b2=old)
        assert agent(daemon)["rejects"]["replayed"] == 0 and daemon.stop() == 0
        assert (site.folder / "state" / f"{ap}.bundle").read_bytes() == fair


def t_several_policies_restart():
    """after a kill each policy's bundle on flash is in force at its place; a damaged one is dropped alone"""
    with Folder() as folder:
        site = Site(folder)
        (ap,), service = site.aps(1), Service(site.authority)
        fair, one, two = site.maker.good(), site.maker.good(of_policy="one"), site.maker.good(of_policy="two")
        service.want(ap, fair)
        service.want_others(ap, one=one, two=two)
        on_flash = {"one.bundle": one, "two.bundle": two}
        try:
            with Daemon(folder, site.config(service.port)) as daemon:
                holds(daemon, fair=fair, one=one, two=two)
                until(lambda: others_on_flash(site) == on_flash and agent(daemon)["stores"] == 3, "on flash")
                daemon.process.kill()
            service.stop()
            with Daemon(folder, site.config(service.port)) as daemon:
                holds(daemon, fair=fair, one=one, two=two)
                until(lambda: agent(daemon)["restored"] == 3, "they came from flash")
                assert daemon.stop() == 0
            state = folder / "state"
            other = site.maker.good(of_policy="two")
            for damage, reason in ((one[:50], "malformed"), (other, "wrong_target")):
                (state / f"{ap}@one.bundle").write_bytes(damage)
                with Daemon(folder, site.config(service.port)) as daemon:
                    holds(daemon, fair=fair, two=two)
                    assert agent(daemon)["rejects"][reason] == 1, agent(daemon)
                    assert others_on_flash(site) == {"two.bundle": two} and daemon.stop() == 0
            service = Service(site.authority, service.port)
            service.want(ap, fair)
            service.want_others(ap, one=one)
            with Daemon(folder, site.config(service.port)) as daemon:
                holds(daemon, fair=fair, one=one)
                until(lambda: set(others_on_flash(site)) == {"one.bundle"}, "what was withdrawn meanwhile is gone")
                assert daemon.stop() == 0
        finally:
            service.stop()


def t_older_service():
    """a service that knows of no other policy takes none away, and is followed in rwnd-fair; lists that are not well
    written say nothing"""
    with running() as (site, service, daemon, (ap,)):
        fair, newer = site.maker.good(), site.maker.good()
        one = site.maker.good(of_policy="one")
        service.want(ap, fair)
        service.want_others(ap, one=one)
        holds(daemon, fair=fair, one=one)
        for nonsense in ("rwnd-fair  two", "rwnd-fair, two", "Two", "x" * 32, "a " * 400):
            asked = []
            service.script(
                ap, lambda h, text=nonsense, asked=asked: (asked.append(1), h.reply(304, {"OAL-Policies": text}))[1]
            )
            until(lambda asked=asked: len(asked) >= 2, "it asks again")
            assert set(policies_of(daemon)) == {"rwnd-fair", "one"}, nonsense
        service.script(ap, lambda h: h.reply(503, {"OAL-Policies": "", "Retry-After": "0"}))
        errors = agent(daemon)["poll_errors"]
        until(lambda: agent(daemon)["poll_errors"] > errors, "an error is no answer")
        service.forget_others(ap)
        service.script(ap, None)
        service.want(ap, newer)
        holds(daemon, fair=newer, one=one)
        until(
            lambda: service.polls[-1][1].get("If-None-Match") == f'"{etag(newer)}"'
            and "OAL-Policies" not in service.polls[-1][1],
            "it asks as an older one does",
        )
        assert agent(daemon)["given_up"] == 0 and daemon.stop() == 0


def killed(daemon: Daemon) -> list[bool]:
    return [a["killed"] for a in agent(daemon)["aps"]]


def t_kill_switch():
    """the kill switch reaches the AP that it is for within its waiting poll; an answer without the header, nonsense in
    it, and no answer at all leave it as it is"""
    with running(3, wait_s=300) as (site, service, daemon, names):
        until(lambda: {ap for ap, _ in service.polls} == set(names), "all ask")
        assert all(h["OAL-Control"] == "on" for _, h in service.polls) and killed(daemon) == [False] * 3
        service.switch(names[1], "off")
        until(lambda: killed(daemon) == [False, True, False], "one is switched off")
        until(lambda: any(ap == names[1] and h["OAL-Control"] == "off" for ap, h in service.polls), "it says so")
        service.switch(names[1], None)  # as a service that knows no kill switch
        before = agent(daemon)["polls"]
        good = site.maker.good()
        service.want(names[1], good)
        applied(daemon, names[1], good)
        until(lambda: agent(daemon)["polls"] > before, "it asks again")
        assert killed(daemon) == [False, True, False]
        for nonsense in ("", "OFF", "offf", "on, on", "x" * 4000):
            asked = []
            service.script(
                names[1],
                lambda h, text=nonsense, asked=asked: (asked.append(1), h.reply(304, {"OAL-Control": text}))[1],
            )
            until(lambda asked=asked: len(asked) >= 2, "it asks again")
            assert killed(daemon) == [False, True, False], nonsense
        service.script(names[1], lambda h: h.reply(503, {"OAL-Control": "on", "Retry-After": "0"}))
        until(lambda: killed(daemon) == [False] * 3, "an answer of any status counts")
        service.script(names[1], None)
        for ap in names:
            service.switch(ap, "off")
        until(lambda: killed(daemon) == [True] * 3, "all are off")
        service.stop()
        before = agent(daemon)["poll_errors"]
        until(lambda: agent(daemon)["poll_errors"] > before + 3, "polls fail")
        assert killed(daemon) == [True] * 3, "a lost connection changes nothing"
        again = Service(site.authority, service.port)
        try:
            again.control = dict.fromkeys(names, "on")
            until(lambda: killed(daemon) == [False] * 3, "the service says otherwise")
            until(lambda: agent(daemon)["control_changes"] == 8, "each change is counted")
            assert daemon.stop() == 0
        finally:
            again.stop()


def killed_policies(daemon: Daemon) -> str:
    (ap,) = agent(daemon)["aps"]
    return ap["killed_policies"]


def t_policy_kill():
    """policies are killed one by one, within the waiting poll; that outlives a power cut and a reload, a list that
    cannot be read changes nothing, and a service that knows no such list ends it"""
    with Folder() as folder:
        site = Site(folder)
        (ap,), service = site.aps(1), Service(site.authority)
        file = folder / "state" / f"{ap}.control"
        try:
            with Daemon(folder, site.config(service.port, wait_s=300)) as daemon:
                until(lambda: service.polls, "it asks")
                assert service.polls[0][1]["OAL-Killed"] == "" and killed_policies(daemon) == ""
                service.kill_policies(ap, "mark rwnd-fair")
                until(lambda: killed_policies(daemon) == "mark rwnd-fair", "two are off")
                assert killed(daemon) == [False]
                until(lambda: service.polls[-1][1]["OAL-Killed"] == "mark rwnd-fair", "it says so")
                until(lambda: file.exists() and file.read_text() == "on mark rwnd-fair\n", "on flash")
                for nonsense in ("Mark", "a  b", "a b c d e f g h i", "x" * 4000):
                    asked = []
                    service.script(ap, lambda h, text=nonsense, asked=asked: (
                        asked.append(1), h.reply(304, {"OAL-Control": "on", "OAL-Killed": text}))[1])
                    until(lambda asked=asked: len(asked) >= 2, "it asks again")
                    assert killed_policies(daemon) == "mark rwnd-fair", nonsense
                service.script(ap, lambda h: h.reply(304, {"OAL-Control": "off", "OAL-Killed": "Mark"}))
                until(lambda: killed(daemon) == [True], "all are off, whatever the list beside it says")
                assert killed_policies(daemon) == "mark rwnd-fair"
                service.script(ap, None)
                service.kill_policies(ap, "mark")
                until(lambda: killed(daemon) == [False], "all the others are on again")
                until(lambda: killed_policies(daemon) == "mark", "one is on again")
                until(lambda: file.read_text() == "on mark\n", "on flash")
                daemon.process.kill()
            service.stop()
            with Daemon(folder, site.config(service.port)) as daemon:
                until(lambda: agent(daemon)["poll_errors"], "the service is away")
                assert killed_policies(daemon) == "mark" and killed(daemon) == [False]
                daemon.process.send_signal(signal.SIGHUP)
                until(lambda: daemon.status()["reloads"] == 1, "reloaded")
                assert killed_policies(daemon) == "mark"
                service = Service(site.authority, service.port)
                service.control[ap] = "off"  # as one that knows no such list: all are off, or none is
                until(lambda: killed(daemon) == [True] and killed_policies(daemon) == "", "all are off")
                until(lambda: file.read_text() == "off\n", "on flash")
                assert daemon.stop() == 0
            service.stop()
            for text, off, names in ((b"off mark\n", True, "mark"), (b"on a b\n", False, "a b"),
                                     (b"on Mark\n", True, ""), (b"on \n", True, ""), (b"on mark", True, "")):
                file.write_bytes(text)
                with Daemon(folder, site.config(service.port)) as daemon:
                    assert killed(daemon) == [off] and killed_policies(daemon) == names, text
                    assert daemon.stop() == 0
        finally:
            service.stop()


def t_kill_switch_restarts():
    """the kill switch outlives a power cut and a reload, also without the service, until the service says otherwise; a
    damaged file means off"""
    with Folder() as folder:
        site = Site(folder)
        (ap,), service = site.aps(1), Service(site.authority)
        file = folder / "state" / f"{ap}.control"
        try:
            with Daemon(folder, site.config(service.port)) as daemon:
                until(lambda: agent(daemon)["polls"], "it asks")
                assert not file.exists(), "nothing to keep"
                service.switch(ap, "off")
                until(
                    lambda: killed(daemon) == [True] and file.exists() and file.read_text() == "off\n",
                    "off, and on flash",
                )
                daemon.process.kill()
            service.stop()
            with Daemon(folder, site.config(service.port)) as daemon:
                until(lambda: agent(daemon)["poll_errors"], "the service is away")
                assert killed(daemon) == [True] and "kill switch" in daemon.log.read_text()
                service = Service(site.authority, service.port)
                service.control[ap] = "on"
                until(lambda: killed(daemon) == [False] and file.read_text() == "on\n", "on again, and on flash")
                assert daemon.stop() == 0
            service.control.clear()
            for text, off in ((b"on\n", False), (b"", True), (b"o", True), (b"off", True), (bytes(100), True)):
                file.write_bytes(text)
                with Daemon(folder, site.config(service.port)) as daemon:
                    assert killed(daemon) == [off] and agent(daemon)["store_errors"] == off, text
                    assert daemon.stop() == 0
            # Without a folder a reload keeps it all the same.
            with Daemon(folder, site.config(service.port, state=False)) as daemon:
                assert killed(daemon) == [False]
                service.switch(ap, "off")
                until(lambda: killed(daemon) == [True], "off")
                service.switch(ap, None)
                daemon.process.send_signal(signal.SIGHUP)
                until(lambda: daemon.status()["reloads"] == 1, "reloaded")
                assert killed(daemon) == [True] and daemon.stop() == 0
            # A folder that is away when it is turned: kept once it is back.
            file.unlink()
            with Daemon(folder, site.config(service.port)) as daemon:
                (folder / "state").rename(folder / "away")
                service.switch(ap, "off")
                until(lambda: killed(daemon) == [True] and agent(daemon)["store_errors"], "off, and not kept")
                (folder / "away").rename(folder / "state")
                until(lambda: file.exists() and file.read_text() == "off\n", "kept")
                assert daemon.stop() == 0
        finally:
            service.stop()


def fnv(name: str) -> int:
    """64-bit FNV-1a without the highest bit: how an ap_id stands in rows."""
    h = 14695981039346656037
    for byte in name.encode():
        h = (h ^ byte) * 1099511628211 % 2**64
    return h % 2**63


HALL = ("hall-1", 5180)  # the site of these tests, and the channel of the capture


def no_more_neighbours(daemon: Daemon) -> bool:
    before = daemon.status()
    until(lambda: daemon.status()["ticks"] > before["ticks"] + 150, "two batches go by")
    return daemon.status()["table_rows"]["neighbour_ap"] == before["table_rows"]["neighbour_ap"]


def t_neighbours():
    """who shares the AP's channel becomes rows, with their ages; who is not told of any more has no row in later
    batches"""
    with running(neighbours_s=1) as (site, service, daemon, (ap,)):
        service.neighbours[HALL] = [
            neighbour("far", stations=7),
            neighbour(ap),
            neighbour("near", backlog_bytes=4_000_000_000),
        ]
        until(lambda: daemon.status()["table_rows"]["neighbour_ap"] >= 20, "rows are made")
        until(lambda: agent(daemon)["neighbours"]["unchanged"] >= 1, "the same again costs nothing")
        service.neighbours[HALL] = [neighbour("near", backlog_bytes=5)]
        until(lambda: agent(daemon)["neighbours"]["told"] >= 2, "the news is told")
        ticks = daemon.status()["ticks"]
        until(lambda: daemon.status()["ticks"] > ticks + 500, "batches go by")
        del service.neighbours[HALL]
        until(lambda: agent(daemon)["neighbours"]["told"] >= 3, "nobody is there any more")
        until(lambda: no_more_neighbours(daemon), "and no more rows")
        counts = agent(daemon)["neighbours"]
        assert not counts["refused"] and not counts["errors"] and set(service.asked) == {(ap, *HALL)}, (
            counts,
            service.asked[:3],
        )
        assert counts["asked"] <= daemon.status()["ticks"] // 250 + 2, "once a second"
        assert daemon.stop() == 0
        rows = daemon.rows("neighbour_ap")
        by = {name: [r for r in rows if r["neighbour"] == fnv(name)] for name in ("far", "near")}
        assert len(rows) == sum(map(len, by.values())), "nobody else"
        assert {(r["stations"], r["tx_kbps"], r["frequency_mhz"]) for r in by["far"]} == {(7, 9000, 5180)} and {
            r["backlog_bytes"] for r in by["near"]
        } == {4_000_000_000, 5}
        assert max(r["ts_us"] for r in by["far"]) < max(r["ts_us"] for r in by["near"])
        ages = [r["age_ms"] for r in by["far"]]
        assert ages[0] >= 1200 and max(ages) > ages[0] + 700, ages


def t_neighbours_refused():
    """an answer that is malformed, oversized, of another channel or an error changes no row, is counted and said; a
    good one ends that"""
    def say(body, status=200, **headers):
        return lambda h: h.reply(status, {k.replace("_", "-"): v for k, v in headers.items()}, body)

    def of(**change):
        return json.dumps({"site": HALL[0], "frequency_mhz": HALL[1], "t_us": 1, "aps": [], **change}).encode()

    def endless(handler):
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        chunks_without_end(handler)
    good = [neighbour("far")]
    with running(neighbours_s=1) as (site, service, daemon, (ap,)):
        service.neighbours[HALL] = good
        until(lambda: daemon.status()["table_rows"]["neighbour_ap"] >= 1, "rows are made")
        refused = {
            "broken": say(b"{"),
            "another site": say(of(site="hall-2")),
            "another channel": say(of(frequency_mhz=2412)),
            "too many": say(of(aps=[neighbour(f"n{i}") for i in range(33)])),
            "out of range": say(of(aps=[neighbour("far", stations=65536)])),
            "oversized": say(of(aps=[], more="x" * 9000)),
            "endless": endless,
        }
        for what, answer in refused.items():
            before = agent(daemon)["neighbours"]["refused"]
            service.neighbours[HALL] = answer
            until(lambda before=before: agent(daemon)["neighbours"]["refused"] > before, f"{what} is refused")
            assert "neighbours" in agent(daemon)["aps"][0]["last_error"], what
        for status in (403, 404, 429, 500):
            before = agent(daemon)["neighbours"]["errors"]
            service.neighbours[HALL] = say(b"no", status)
            until(lambda before=before: agent(daemon)["neighbours"]["errors"] > before, f"{status} is an error")
        told = agent(daemon)["neighbours"]["told"]
        service.neighbours[HALL] = [neighbour("far", stations=9)]  # the first one again would be 304
        until(lambda: agent(daemon)["neighbours"]["told"] > told, "a good one is taken")
        assert daemon.stop() == 0
        assert {r["neighbour"] for r in daemon.rows("neighbour_ap")} == {fnv("far")}


def t_neighbours_grow_old():
    """without an answer for three intervals and ten seconds the figures are dropped; with neighbours_s 0 nobody is
    asked"""
    with running(neighbours_s=1) as (site, service, daemon, (ap,)):
        service.neighbours[HALL] = [neighbour("far")]
        until(lambda: daemon.status()["table_rows"]["neighbour_ap"] >= 1, "rows are made")
        service.stop()
        until(lambda: no_more_neighbours(daemon), "no more rows", 60)
        assert agent(daemon)["neighbours"]["errors"] and daemon.stop() == 0
    with running(neighbours_s=0) as (site, service, daemon, (ap,)):
        ticks = daemon.status()["ticks"]
        until(lambda: daemon.status()["ticks"] > ticks + 600, "seconds go by")
        assert not service.asked and not agent(daemon)["neighbours"]["asked"] and daemon.stop() == 0


def t_many_aps():
    """64 virtual APs each have their own bundle, and all follow"""
    with running(64, state=False) as (site, service, daemon, names):
        own = {ap: site.maker.good(target=f"ap/{ap}", threshold=i) for i, ap in enumerate(names)}
        for ap in names:
            service.want(ap, own[ap])
        until(
            lambda: {a["ap_id"]: a["bundle"] for a in agent(daemon)["aps"]} == {ap: etag(own[ap]) for ap in names},
            "each has its own",
        )
        common = site.maker.good()
        for ap in names:
            service.want(ap, common)
        until(lambda: {a["bundle"] for a in agent(daemon)["aps"]} == {etag(common)}, "all have the common one")
        until(lambda: agent(daemon)["reports"] >= 128, "all report")
        assert daemon.stop() == 0


def t_no_allocation_in_ticks():
    """of a live AP the main thread allocates nothing while bundles and policies come and go, programs change and
    decisions are made"""
    with Folder() as folder:
        site = Site(folder)
        (ap,), service = site.aps(1), Service(site.authority)
        allocations = Allocations(folder)
        daemon = Daemon(folder, site.config(service.port, live=True), env=allocations.env)
        try:
            with daemon:
                until(
                    lambda: agent(daemon)["polls"] and daemon.status()["table_rows"]["health"] >= 1,
                    "the first second is over",
                )
                before = allocations.count()
                for features in (0, 5, 0, 0):
                    wanted = site.maker.good(features=features)
                    service.want(ap, wanted)
                    applied(daemon, ap, wanted)
                    seen = agent(daemon)["decisions"]
                    until(lambda: agent(daemon)["decisions"] > seen + 3, "it decides")
                for others in ({"one": site.maker.good(of_policy="one")}, {}):  # a policy comes, and goes
                    service.want_others(ap, **others)
                    holds(daemon, fair=wanted, **others)
                until(
                    lambda: daemon.status()["ticks"] > 2750,
                    "it has given back what only the start needed, after ten seconds",
                )
                assert allocations.count() == before, f"{allocations.count() - before} allocations"
                assert daemon.stop() == 0
        finally:
            service.stop()


def t_configuration():
    """a bad URL, a missing file and bad keys are refused with what to do"""
    with Folder() as folder:
        site = Site(folder)
        site.aps(1)
        good = site.config(1)
        for change, words in (
            (("https://", "http://"), "'url' is like https://"),
            ((f"{site.authority.path}", "/no/ca"), "/no/ca"),
            (("/%s.key", "/none.key"), "none.key"),
            ((f"{folder}/trusted", f"{folder}/ap-test.pem"), "ap-test.pem"),
            (("wait_s '20'", "wait_s '0'"), "1 to 300"),
            (("hall-1", "hall 1"), "'site' has letters"),
        ):
            daemon = Daemon(folder, good.replace(*change))
            done = subprocess.run(
                [str(outside.BINARY), "check-config", "-c", str(daemon.config)], capture_output=True, text=True
            )
            assert done.returncode == 1 and words in done.stderr, (change, done)


def run_both(functions: dict, not_sanitized=()) -> int:
    """Runs what is named t_… (or on the command line) with the daemon, and with the sanitized one; the exit status."""
    total = Sum()
    for binary in [outside.BINARY] if sys.argv[1:] else [outside.BINARY, outside.BUILD / "san" / "ap-exporter"]:
        outside.BINARY = binary
        print(f"# {binary.relative_to(outside.BUILD)}")
        left_out = not_sanitized if binary.parent.name == "san" else ()
        run_tests(tests_of(functions, sys.argv[3:], left_out), AT_ONCE, total)
    return total.status()


if __name__ == "__main__":
    sys.exit(run_both(globals(), not_sanitized=[t_no_allocation_in_ticks]))  # the sanitizers allocate by themselves
