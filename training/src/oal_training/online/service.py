"""The online trainer as a service: parse, start in order, loop, stop in reverse."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from collections import Counter

from confluent_kafka import KafkaException
from oal_schema import keys
from oal_schema.item import BadItem, parse
from oal_schema.policy import Policy
from oal_schema.policy_file import PolicyError
from oal_schema.policy_folder import PolicyFolder

from oal_training.errors import TrainingError
from oal_training.online import config as service_config
from oal_training.online import programs, rows, shipment, tracking
from oal_training.online.bearer import Bearer
from oal_training.online.broker_clock import BrokerClock
from oal_training.online.decision import Decision
from oal_training.online.identity import instance
from oal_training.online.inbox import ItemReader, ReleaseReader
from oal_training.online.metrics import Metrics
from oal_training.online.mlflow_client import Client
from oal_training.online.outbox import Fenced, Outbox
from oal_training.online.page import Page
from oal_training.online.releases import LatestReleases
from oal_training.online.renewals import GOLDEN_ROWS, Renewals
from oal_training.online.shipment import Shipment
from oal_training.online.trainer import OnlineTrainer
from oal_training.server_tls import ServerTls

SLICE_S = 0.25  # decisions of so much time go into one transaction; a tree that is shipped does not wait longer
STUCK_S = 30.0  # without a turn of the loop the service calls itself ill
REPORT_S = 10.0
COMMIT_S = 1.0
FORGET_EVERY_S = 60.0
RENEWALS_AT_ONCE = 50  # in one transaction


def log(line: str) -> None:
    """A line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def main(config_path: str) -> int:
    """Serve until SIGTERM or SIGINT. 1 when another process took over this trainer's identity."""
    config = service_config.load(config_path)
    service = Service(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: service.stop())
    try:
        service.run()
    except Fenced as error:
        log(f"ending: {error}")
        return 1
    return 0


class Service:
    """Items in, trees out. `run` returns after `stop`."""

    def __init__(self, config: service_config.Config):
        self._config = config
        self._stopping = threading.Event()
        self.name, self._lock = instance(config.state_dir)
        try:
            self._key = keys.load(config.signing_key)
        except (OSError, ValueError) as error:
            raise TrainingError(f"signing_key: {error}") from None
        try:
            self._trusted = keys.TrustedFile(config.trusted_keys)
        except (OSError, ValueError) as error:
            raise TrainingError(f"trusted_keys: {error}") from None
        held = self._trusted.keys.get(keys.key_id(self._key))
        if held is None or held.grant is None or "online" not in held.grant.sources:
            raise TrainingError(
                f"trusted_keys: {config.trusted_keys} does not say role=trainer of signing_key; nobody would take its"
                " trees"
            )
        try:
            self._policies = PolicyFolder(config.policies)
        except PolicyError as error:
            raise TrainingError(f"policies: {error}") from None
        self._policies_wrong = ""
        self._programs = programs.of_rwnd_fair()
        self._trainer = OnlineTrainer(config.settings, {h: len(p.words) for h, p in self._programs.items()})
        self._releases = LatestReleases(lambda: self._trusted.keys, _now_us)
        self._renewals = Renewals(self._releases, self._policies, self._trainer.aps, self._programs, self._key)
        self._followed: dict[str, tuple[int, str]] = {}  # AP → generation and site that `follow` was last called with
        self._partition: dict[str, int] = {}
        self._clock, self._clock_wrong = BrokerClock(), ""
        self._metrics = Metrics()
        self._turned = time.monotonic()
        self._shipped: Counter[str] = Counter()
        tls = ServerTls(*config.tls) if config.tls else None
        self._page = Page(config.listen, self._metrics, self._ailment, Bearer(config.metrics_token_file), tls)
        self._tracking = (
            tracking.Tracking(Client(config.mlflow), self._metrics, log, self.name) if config.mlflow else None
        )
        self._outbox = Outbox(config.kafka, self.name, lambda: not self._stopping.is_set(), log)
        self._bundles = ReleaseReader(config.kafka, self.name, log)
        self._items = ItemReader(config.kafka, self.name, config.settings.window_items, self._lost, log)
        self._starting = True

    def stop(self) -> None:
        """Ask `run` to return; safe in a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Start, serve, stop."""
        self._page.start()
        if self._tracking:
            self._tracking.start()
        log(f"{self.name}: connecting to {self._config.kafka['bootstrap.servers']}")
        try:
            if self._open():
                self._loop()
                self._commit_offsets()
        finally:
            self._items.close()
            self._bundles.close()
            if self._tracking:
                self._tracking.stop()
            self._page.stop()
            log("stopped")

    def _open(self) -> bool:
        if not self._outbox.open():
            return False
        while not self._bundles.open():
            if self._stopping.wait(1):
                return False
        while not self._bundles.caught_up:
            self._read_releases(0.2)
            if self._stopping.is_set():
                return False
        self._items.subscribe()
        self._starting = False
        log("ready")
        return True

    def _ailment(self) -> str:
        if self._starting:
            return "starting: Kafka has not answered yet, or the releases are not read"
        if not self._items.joined:
            why = self._items.fatal
            return "joining the consumer group" + (f": the last consumer could not go on: {why}" if why else "")
        idle = time.monotonic() - self._turned
        return f"the loop has not turned for {idle:.0f} s; is Kafka away?" if idle > STUCK_S else self._clock_wrong

    # --- the loop

    def _loop(self) -> None:
        every = self._config.settings.fit_every_s
        due = time.monotonic() + every
        report = forget = committed = time.monotonic()
        while not self._stopping.is_set():
            self._turned = time.monotonic()
            self._read_items(min(0.2, max(0.0, due - time.monotonic())))
            self._read_releases(0)
            now = time.monotonic()
            if now >= due:
                due = max(due + every, now)
                self._round()
                self._metrics.set("oal_trainer_tick_seconds", time.monotonic() - now)
            if now - committed >= COMMIT_S:
                committed = now
                self._look_at_policies()
                self._renew()
                self._commit_offsets()
                self._measure()
            if now - forget >= FORGET_EVERY_S:
                forget = now
                self._forget(self._trainer.forget_silent(_now_us()))
            if now - report >= REPORT_S:
                report = now
                self._report()

    def _read_items(self, timeout_s: float) -> None:
        now = _now_us()
        for message in self._items.poll(timeout_s):
            try:
                item = parse(message.value() or b"")
            except BadItem:
                self._trainer.counts["malformed"] += 1
                continue
            self._trainer.add(item, now, message.offset())
            self._partition[item.ap_id] = message.partition()
            self._clock.read(message.timestamp(), now, message.partition() not in self._items.catching_up)

    def _read_releases(self, timeout_s: float) -> None:
        for key, value in self._bundles.poll(timeout_s):
            self._releases.put(key, value)

    def _round(self) -> None:
        """A tree for every AP that has new items, unless its partition is still being read, or the clock is wrong."""
        if not self._look_at_clock():
            return
        behind = self._items.catching_up
        ready = [
            ap_id
            for ap_id in self._trainer.changed()
            if self._partition.get(ap_id) in self._items.positions and self._partition[ap_id] not in behind
        ]
        decided: list[Decision] = []
        started = time.monotonic()
        for ap_id in ready:
            self._follow(ap_id)
            decided.append(self._trainer.ap(ap_id).decide(_now_us()))
            if time.monotonic() - started >= SLICE_S:
                self._settle(decided)
                self._turned = started = time.monotonic()
                decided = []
                if self._stopping.is_set():
                    return
        if decided:
            self._settle(decided)

    def _look_at_clock(self) -> bool:
        """May anything be signed by it? Says so when that changes."""
        if self._clock.wrong and not self._clock_wrong:
            log(self._clock.wrong)
        elif self._clock_wrong and not self._clock.wrong:
            log("this machine's clock is right again")
        self._clock_wrong = self._clock.wrong
        return not self._clock_wrong

    def _follow(self, ap_id: str) -> None:
        """Tell the AP's state what is in force, when that may have changed."""
        ap = self._trainer.ap(ap_id)
        seen = (self._releases.generation, ap.site)
        if self._followed.get(ap_id) != seen:
            self._followed[ap_id] = seen
            ap.follow(self._releases.followed(ap_id, ap.site).in_force)

    def _settle(self, decided: list[Decision]) -> None:
        """Write decisions and shipments in one transaction; they take effect when it is committed."""
        shipments = {d.ap_id: self._shipment(d) for d in decided if d.shipped}
        for decision in decided:
            if decision.tree is not None:
                self._metrics.add("oal_trainer_fits_total")
                self._metrics.add("oal_trainer_fit_cpu_seconds_total", decision.fit_us / 1e6)
        events = rows.records(
            "tree_decision", (rows.tree_decision(d, self.name, shipments.get(d.ap_id)) for d in decided)
        )
        if not self._send(list(shipments.values()), list(events), f"{len(decided)} decisions"):
            return
        for decision in decided:
            self._took_effect(decision, shipments.get(decision.ap_id))

    def _send(self, shipments: list[Shipment], events: list[bytes], what: str) -> bool:
        """Write releases with their rows, and `events`, in one transaction. False: nothing was written."""
        if not self._items.still_mine():
            log(f"{what} came too late to be sure that the APs are still this trainer's; they are made anew")
            return False
        try:
            done = self._outbox.commit(
                [(s.key, s.value) for s in shipments],
                [*events, *rows.records("release", (rows.release(s) for s in shipments))],
            )
        except KafkaException as error:
            raise Fenced(error.args[0].str()) from None
        self._metrics.add("oal_trainer_transactions_total", result="committed" if done else "aborted")
        if not done:
            log(f"a transaction with {what} and {len(shipments)} trees was aborted; they are made anew")
        return done

    def _renew(self) -> None:
        """Release every online tree once more whose AP has another policy now, whether the AP sends items or not."""
        if not self._look_at_clock():
            return
        mine = lambda ap_id: self._items.owns(self._partition.get(ap_id), ap_id)
        due = self._renewals.due(mine, _now_us(), frozenset(self._items.positions))
        while some := list(itertools.islice(due, RENEWALS_AT_ONCE)):
            if not self._send(some, [], f"{len(some)} renewals"):
                return
            self._turned = time.monotonic()
            for sent in some:
                self._releases.put(sent.key.encode(), sent.value)
                self._metrics.add("oal_trainer_renewals_total")
                log(f"{sent.decision.ap_id}: tree {sent.version} released again, policy {sent.policy}")

    def _look_at_policies(self) -> None:
        self._trusted.look()
        self._policies.look()
        if self._policies.wrong != self._policies_wrong:
            self._policies_wrong = self._policies.wrong
            log(
                f"policies: {self._config.policies} is not taken: {self._policies_wrong}"
                if self._policies_wrong
                else "policies: well again"
            )
        self._metrics.set("oal_trainer_policies_wrong", float(bool(self._policies_wrong)))

    def _policy(self, decision: Decision) -> Policy:
        return self._policies.policies.of_ap(decision.ap_id, decision.site)

    def _shipment(self, decision: Decision) -> Shipment:
        ap = self._trainer.ap(decision.ap_id)
        return shipment.make(
            decision,
            self._programs[decision.feature_hash],
            self._releases.followed(decision.ap_id, decision.site),
            ap.window.values[-GOLDEN_ROWS:],
            self._key,
            self._tracking.run_id(decision.ap_id) if self._tracking else "",
            self._policy(decision),
        )

    def _took_effect(self, decision: Decision, sent: Shipment | None) -> None:
        self._metrics.add("oal_trainer_decisions_total", action="shipped" if sent else "held", reason=decision.reason)
        if sent:
            self._releases.put(sent.key.encode(), sent.value)
            self._trainer.shipped(decision, sent.bundle_id)
            self._shipped[decision.ap_id] += 1
            self._metrics.add("oal_trainer_ships_total")
            log(
                f"{decision.ap_id}: shipped tree {sent.version} ({decision.tree.n_nodes} nodes, {sent.bytes} bytes):"
                f" {decision.reason}; onset AP {decision.candidate.onset_ap:.3f} against"
                f" {decision.in_force.onset_ap:.3f} in force and {decision.persistence.onset_ap:.3f} of persistence"
            )
        if self._tracking and self._tracking.wanted(decision):
            self._tracking.offer(
                tracking.entry(
                    decision,
                    self._shipped[decision.ap_id],
                    sent.version if sent else 0,
                    sent.hash.hex() if sent else "",
                )
            )

    def _commit_offsets(self) -> None:
        oldest: dict[int, int] = {}
        for ap_id, ap in self._trainer.aps.items():
            if (offset := ap.oldest_offset()) >= 0 and (partition := self._partition.get(ap_id)) is not None:
                oldest[partition] = min(offset, oldest.get(partition, offset))
        self._items.commit(oldest)

    # --- changes of the group

    def _lost(self, partitions: list[int]) -> None:
        gone = [ap_id for ap_id, partition in self._partition.items() if partition in partitions]
        self._trainer.drop(gone)
        self._forget(gone)

    def _forget(self, ap_ids: list[str]) -> None:
        """Nothing of these APs is kept: they are silent, or another trainer's."""
        for ap_id in ap_ids:
            for kept in (self._partition, self._followed):
                kept.pop(ap_id, None)
        if self._tracking:
            self._tracking.forget(ap_ids)

    # --- what is told

    def _measure(self) -> None:
        for fate, count in self._trainer.counts.items():
            self._metrics.set("oal_trainer_items_total", count, fate=fate)
        aps = self._trainer.aps
        self._metrics.set("oal_trainer_aps", len(aps))
        self._metrics.set("oal_trainer_window_items", sum(len(ap) for ap in aps.values()))
        self._metrics.set("oal_trainer_partitions", len(self._items.positions))
        self._metrics.set("oal_trainer_consumers_total", self._items.renewals)
        self._metrics.set("oal_trainer_lag_items", self._items.lag())
        self._metrics.set("oal_trainer_releases_refused_total", self._releases.refused)

    def _report(self) -> None:
        log(
            ", ".join(
                [
                    f"{len(self._trainer.aps)} APs",
                    *(f"{count} items {fate}" for fate, count in sorted(self._trainer.counts.items())),
                    f"{sum(self._shipped.values())} trees shipped",
                    f"{self._items.lag()} items behind",
                ]
            )
        )


def _now_us() -> int:
    return time.time_ns() // 1000
