"""One AP: its window, the tree in force, and the decision about each fresh tree. Knows no clock and no Kafka."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from oal_schema.item import Item
from oal_schema.policy import Policy
from oal_schema.tree import Tree

from oal_training.online import decision as why
from oal_training.online.decision import Decision
from oal_training.online.drift import PageHinkley
from oal_training.online.evidence import MIN_ITEMS, Challenge, Evidence
from oal_training.online.kernel import CLASSES, Evaluator, Fitter
from oal_training.online.rivals import Rivals
from oal_training.online.score import FINE, NONE, POOR, Score, beats, episodes, onsets, score
from oal_training.online.settings import RIVALS, Settings
from oal_training.online.window import Window

# Loss that stands for a class when the ratio itself is not known, in 1/FINE.
TYPICAL_LOSS = np.array([0, 250, 800, 2000], np.int32)
CLOCK_STEP_US = 10_000_000  # an item this much older than the last one means that the AP's clock was set back


@dataclass(frozen=True)
class InForce:
    """The bundle that an AP follows now. `tree` is None when it cannot be evaluated on this platform's features."""

    bundle_id: int
    tree: Tree | None
    pinned: bool = False
    promoted_us: int = 0  # when a person made it champion; 0 for an online tree
    policy: Policy = Policy()
    rank: int = 0  # of an online tree's release


class Parts(NamedTuple):
    """Positions in the window, int32: the items to fit on, to test on (the latest), and of the reference blocks."""

    train: np.ndarray
    test: np.ndarray
    reference: np.ndarray


class Trial(NamedTuple):
    """A freshly fitted tree and the items that it was fitted and judged on."""

    candidate: Evaluator
    parts: Parts


class Bar(NamedTuple):
    """What a tree must reach to be shipped for `reason`: margins on both figures, evidence from later blocks at this
    rate of false ships (1: none is asked for), so long after the last.
    """

    reason: str
    margin_onset_ap: float
    margin_macro_f1: float
    false_ship_rate: float
    interval_s: float


class Ap:
    """State of one AP. `add` takes items in order, `decide` fits and judges a tree, `follow` sets what is in force."""

    def __init__(self, ap_id: str, settings: Settings, fitter: Fitter):
        self.ap_id, self.site = ap_id, ""
        self.settings, self._fitter = settings, fitter
        self.in_force: InForce | None = None
        self.drift = PageHinkley(settings.drift)
        self.changed = False
        self.last_added_us = 0
        self._last_ship_us = self._drift_until_us = 0
        self._evaluator: Evaluator | None = None
        self._start(0, 0)

    def _start(self, feature_hash: int, features: int) -> None:
        fit = self.settings.fit
        self.feature_hash = feature_hash
        self.window = Window(self.settings.window_items, features, fit.bins, fit.edges_per_fit) if features else None
        self._lead_us = 0  # of an item's label: horizon + label window
        self._losses: dict[int, int] = {}  # loss by the instant at which its label window ends, for persistence
        self._errors = [0, 0]  # items and errors of the tree in force in the second that runs
        self._error_second = 0
        self.rivals = Rivals(int(self.settings.judge.rivals_every_s * 1e6))
        self._contest_anew()
        if self.in_force and self.in_force.tree is not None and self.in_force.tree.feature_hash != feature_hash:
            self._evaluator = None

    # --- items

    def add(self, item: Item, label_window_us: int, offset: int = -1) -> str | None:
        """Take an item; the reason when it is not used, or None: `old` (not newer than the last), `contradictory` (its
        class_now is not what the item one lead earlier said came true: neither of the two is used).
        """
        if self.window is None or item.feature_hash != self.feature_hash or len(item.features) != self.window.features:
            self._start(item.feature_hash, len(item.features))
            self._set_evaluator()
        elif len(self.window) and item.ts_us <= (last := int(self.window.ts_us[-1])):
            if last - item.ts_us < CLOCK_STEP_US:
                return "old"
            self._start(item.feature_hash, len(item.features))
            self._set_evaluator()
        self.site = item.site
        self._lead_us = item.horizon_us + label_window_us
        loss = min(FINE, max(0, round(item.loss_ratio * FINE)))
        self._losses[item.ts_us + self._lead_us] = loss
        loss_now = self._losses.pop(item.ts_us, -1)
        if loss_now >= 0:
            told = int(np.searchsorted(self.window.ts_us, item.ts_us - self._lead_us))
            if (
                told < len(self.window)
                and self.window.ts_us[told] == item.ts_us - self._lead_us
                and self.window.truth[told] != item.class_now
            ):
                self.window.doubtful[told] = 1
                return "contradictory"
        if len(self._losses) > 256:
            self._losses = {end: known for end, known in self._losses.items() if end > item.ts_us}
        self.window.add(
            item.features,
            ts_us=item.ts_us,
            class_now=item.class_now,
            truth=item.truth,
            loss=loss,
            loss_now=loss_now if loss_now >= 0 else TYPICAL_LOSS[item.class_now],
            held_class=0,
            held_congested=0,
            offset=offset,
            doubtful=0,
        )
        if self._evaluator:
            self._watch(item)
        self.changed = True
        return None

    def _watch(self, item: Item) -> None:
        """What the tree in force says of the newest item, and whether its errors rise."""
        held, congested = self._evaluator.predict(self.window.values, np.array([len(self.window) - 1], np.int32))
        self.window.held_class[-1], self.window.held_congested[-1] = held[0], congested[0] * (FINE // 1000)
        second = item.ts_us // 1_000_000
        if second != self._error_second and self._errors[0]:
            if self.drift.update(self._errors[1] / self._errors[0]):
                self._drift_until_us = item.ts_us + int(self.settings.drift.alarm_s * 1e6)
            self._errors = [0, 0]
        self._error_second = second
        self._errors[0] += 1
        self._errors[1] += int(held[0] != item.truth)

    def follow(self, in_force: InForce | None) -> None:
        """Another bundle is in force, or none. The drift detector starts anew."""
        if in_force == self.in_force:
            return
        new_tree = (in_force and in_force.bundle_id) != (self.in_force and self.in_force.bundle_id)
        self.in_force = in_force
        if not new_tree:
            return
        self.drift.reset()
        self._drift_until_us = 0
        self._errors = [0, 0]
        self._contest_anew()
        self._set_evaluator()

    def _contest_anew(self) -> None:
        """Nothing is known for or against fresh trees."""
        self.evidence, self._challenge = Evidence(), None

    def _set_evaluator(self) -> None:
        tree = self.in_force.tree if self.in_force else None
        usable = (
            tree is not None
            and self.window is not None
            and tree.feature_hash == self.feature_hash
            and int(tree.feature.max()) < self.window.features
        )
        self._evaluator = Evaluator(tree) if usable else None
        if usable and len(self.window):
            held, congested = self._evaluator.predict(self.window.values, np.arange(len(self.window), dtype=np.int32))
            self.window.held_class[:], self.window.held_congested[:] = held, congested * (FINE // 1000)

    def __len__(self) -> int:
        return len(self.window) if self.window is not None else 0

    def oldest_offset(self) -> int:
        """Kafka offset of the oldest item in the window, -1 when there is none."""
        return int(self.window.offset[0]) if self.window is not None and len(self.window) else -1

    # --- decisions

    def decide(self, now_us: int) -> Decision:
        """Fit a tree on what is old enough, judge it on what came later. `now_us`: µs since 1970."""
        self.changed = False
        self._settle()
        trial, decision = self._fitted(now_us)
        reason = decision.reason or self._verdict(decision, trial)
        if reason in why.CLEARLY_BETTER and self._evaluator and not self._challenge:
            begin = int(self.window.ts_us[-1]) + self._lead_us  # no label that chose the tree reaches into the block
            block_us = int(self.settings.ship.confirm_block_s * 1e6)
            self._challenge = Challenge(trial.candidate, begin, begin + block_us)
        return replace(decision, shipped=reason in why.TO_SHIP, reason=reason)

    def _settle(self) -> None:
        """When the block of the challenge is over, it counts, however the newest fits look."""
        challenge, window = self._challenge, self.window
        if challenge is None or int(window.ts_us[-1]) < challenge.until_us:
            return
        self._challenge = None
        items = challenge.items(window.ts_us, window.doubtful)
        if len(items) >= MIN_ITEMS:
            self.evidence.add(float(self._more_errors(challenge.tree, items).mean()))

    def _fitted(self, now_us: int) -> tuple[Trial | None, Decision]:
        """A fresh tree, with all of the decision but its reason; (None, decision with its reason) when none can be
        fitted.
        """
        window, least = self.window, self.settings.judge
        so_far = Decision(
            self.ap_id,
            self.site,
            now_us,
            shipped=False,
            reason="",
            items=len(self),
            drift=self.drift.statistic,
            feature_hash=self.feature_hash,
            in_force_id=self.in_force.bundle_id if self.in_force else 0,
        )
        if len(self) < least.min_items:
            return None, replace(so_far, reason=why.TOO_FEW_ITEMS)
        parts = self._parts()
        so_far = replace(so_far, train_items=len(parts.train), test_items=len(parts.test))
        if min(len(parts.train), len(parts.test)) < least.min_test_items:
            return None, replace(so_far, reason=why.TOO_FEW_ITEMS)
        class_now, truth = window.class_now[parts.test], window.truth[parts.test]
        so_far = replace(
            so_far,
            test_onsets=int(np.count_nonzero(onsets(class_now, truth))),
            train_until_us=int(window.ts_us[parts.train[-1]]),
            test_until_us=int(window.ts_us[parts.test[-1]]),
        )
        share = np.bincount(window.truth[parts.train], minlength=CLASSES) / len(parts.train)
        if np.count_nonzero(share) < 2:
            return None, replace(so_far, reason=why.ONE_CLASS)

        started = time.thread_time_ns()
        tree = self._fit(parts.train, share)
        fit_us = (time.thread_time_ns() - started) // 1000
        candidate = Evaluator(tree)
        persistence = score(class_now, window.loss_now[parts.test], class_now, truth)
        column = thresholds = float("nan")
        if len(self.settings.judge.rivals) > 1:
            self.rivals.choose(now_us, window.values, parts.train, window.class_now, window.truth)
            column, thresholds = self.rivals.onset_ap(window.values, parts.test, window.class_now, window.truth)
        return Trial(candidate, parts), replace(
            so_far,
            tree=tree,
            fit_us=fit_us,
            candidate=self._score(parts.test, candidate),
            persistence=persistence,
            column=Score(column, persistence.macro_f1),
            thresholds=Score(thresholds, persistence.macro_f1),
            in_force=self._score(parts.test) if self._evaluator else NONE,
        )

    def _verdict(self, decision: Decision, trial: Trial) -> str:
        """The reason to ship the tree, or to hold it: the first that applies, in this order."""
        if self.in_force and self.in_force.pinned:
            return why.PINNED
        if self.in_force and not self._evaluator:
            return why.NOT_COMPARABLE
        if not self._enough_onsets(decision, trial.parts.test):
            return why.TOO_FEW_ONSETS
        cheap = (decision.persistence, decision.column, decision.thresholds)
        for word, rival, reason in zip(RIVALS, cheap, why.LOSES_TO_CHEAP):
            if word in self.settings.judge.rivals and not beats(decision.candidate, [rival], 0, 0):
                return reason
        rivals = [decision.persistence] + ([decision.in_force] if self._evaluator else [])
        if not beats(decision.candidate, rivals, 0, 0):
            return why.LOSES_TO_IN_FORCE
        if self._evaluator and not self._as_good_on_reference(trial.candidate, trial.parts.reference):
            return why.WORSE_ON_REFERENCE
        every = np.concatenate([trial.parts.reference, trial.parts.test])
        if self._evaluator and not self._better_in_most_blocks(trial.candidate, every):
            return why.A_STRETCH_ONLY
        bar = self._bar(drifting=decision.ts_us < self._drift_until_us)
        if not beats(decision.candidate, rivals, bar.margin_onset_ap, bar.margin_macro_f1):
            return why.NOT_CLEARLY
        if bar.false_ship_rate < 1 and not self.evidence.enough(bar.false_ship_rate):
            return why.UNCONFIRMED
        if decision.ts_us - self._last_ship_us < bar.interval_s * 1e6:
            return why.TOO_SOON
        if self.in_force and decision.ts_us - self.in_force.promoted_us < self.settings.ship.champion_hold_s * 1e6:
            return why.JUST_PROMOTED
        return bar.reason

    def _enough_onsets(self, decision: Decision, test: np.ndarray) -> bool:
        """Are there onsets enough in the test part, and in episodes of their own?"""
        least, window = self.settings.judge, self.window
        if decision.test_onsets < least.min_onsets:
            return False
        onset = onsets(window.class_now[test], window.truth[test])
        return episodes(window.ts_us[test], onset, self._lead_us) >= least.min_episodes

    def _bar(self, drifting: bool) -> Bar:
        """By how much, how surely and how long after the last tree a fresh one must be better."""
        ship = self.settings.ship
        if not self._evaluator:
            return Bar(why.FIRST, ship.first_margin, ship.first_margin, 1.0, 0.0)
        if drifting:
            margin, rate = ship.drift_margin, ship.drift_false_ship_rate
            return Bar(why.DRIFT, margin, margin, rate, ship.drift_min_interval_s)
        rate = ship.false_ship_rate
        return Bar(why.BETTER, ship.margin_onset_ap, ship.margin_macro_f1, rate, ship.min_interval_s)

    def shipped(self, decision: Decision, in_force: InForce) -> None:
        """The tree of `decision` has been released as `in_force`."""
        self._last_ship_us = decision.ts_us
        self.follow(in_force)

    def _parts(self) -> Parts:
        """Positions of the items to fit on, to test on (the latest), and of the reference blocks before those; int32,
        in order of time.

        No label window of an item fitted on touches one of the others: between them lies horizon + label window.
        """
        ts, judge = self.window.ts_us, self.settings.judge
        n = len(ts)
        begin = ts[n - max(judge.min_test_items, int(n * judge.test_share))] if n > judge.min_test_items else ts[0]
        block = int(judge.reference_block_s * 1e6)
        cycle = block * judge.reference_every
        early = ts + self._lead_us <= begin
        in_block = ts % cycle < block
        near = in_block | ((ts + self._lead_us) % cycle < block) | ((ts - self._lead_us) % cycle < block)
        sure = self.window.doubtful == 0
        train, test, reference = early & ~near & sure, (ts >= begin) & sure, early & in_block & sure
        return Parts(*(np.flatnonzero(part).astype(np.int32) for part in (train, test, reference)))

    def _fit(self, train: np.ndarray, share: np.ndarray) -> Tree:
        window = self.window
        window.prepare()
        weight = np.ones(CLASSES, np.float32)
        there = share > 0
        weight[there] = (1 / (share[there] * np.count_nonzero(there))) ** self.settings.fit.class_weight_power
        return self._fitter.fit(window.binning, window.binned, window.truth, train, weight, self.feature_hash)

    def _score(self, items: np.ndarray, candidate: Evaluator | None = None) -> Score:
        """Score of a candidate, or of the tree in force, on the items at these positions."""
        window = self.window
        if candidate is None:
            predicted, congested = window.held_class[items], window.held_congested[items]
        else:
            predicted, congested = candidate.predict(window.values, items)
            congested = congested * (FINE // 1000)
        return score(predicted, congested, window.class_now[items], window.truth[items])

    def _as_good_on_reference(self, candidate: Evaluator, reference: np.ndarray) -> bool:
        if len(reference) < self.settings.judge.min_test_items or not (self.window.truth[reference] >= POOR).any():
            return True
        ours, theirs = self._score(reference, candidate), self._score(reference)
        tolerance = self.settings.judge.reference_tolerance
        return ours.macro_f1 >= theirs.macro_f1 - tolerance and not ours.onset_ap < theirs.onset_ap - tolerance

    def _better_in_most_blocks(self, candidate: Evaluator, items: np.ndarray) -> bool:
        """Of the blocks of time in which the two trees differ, does the candidate err less in half of them at least?

        A minute of poisoned labels can carry an average, not a majority of blocks.
        """
        window = self.window
        block = window.ts_us[items] // int(self.settings.judge.reference_block_s * 1e6)
        _, number = np.unique(block, return_inverse=True)
        size = np.bincount(number)
        difference = np.bincount(number, self._more_errors(candidate, items)) / size
        differing = difference[(np.abs(difference) > 1e-3) & (size * 2 >= size.max())]
        return len(differing) == 0 or np.count_nonzero(differing < 0) * 2 >= len(differing)

    def _more_errors(self, candidate: Evaluator, items: np.ndarray) -> np.ndarray:
        """By item, the candidate's error minus that of the tree in force. Error: wrong class (0 or 1) + Brier score of
        congestion.
        """
        window = self.window
        ours = self._errors_of(items, *candidate.predict(window.values, items))
        return ours - self._errors_of(items, window.held_class[items], window.held_congested[items] // (FINE // 1000))

    def _errors_of(self, items: np.ndarray, predicted: np.ndarray, congested_permille: np.ndarray) -> np.ndarray:
        truth = self.window.truth[items]
        return (predicted != truth) + (congested_permille / 1000 - (truth >= POOR)) ** 2
