"""The online trainer without Kafka: items and a clock in, decisions out.

The service, the replay, the bench and the tests run this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from oal_schema.bundle_law import RWND_FAIR
from oal_schema.item import Item
from oal_schema.settings import settings as contract

from oal_training.online.ap import Ap, InForce
from oal_training.online.decision import Decision
from oal_training.online.kernel import Fitter
from oal_training.online.settings import Settings


class OnlineTrainer:
    """State of many APs.

    features: number of features by feature hash, of the programs that this platform knows; items of others are refused.
    None takes any. Online trees are rwnd-fair's, so items of other policies are left alone.
    """

    def __init__(self, settings: Settings, features: dict[int, int] | None = None):
        self.settings = settings
        self._features = features
        self._label_window_us = contract()["label_window_us"]
        fit = settings.fit
        self._fitter = Fitter(fit.max_nodes, fit.max_depth, fit.min_leaf, fit.min_gain, fit.smoothing)
        self.aps: dict[str, Ap] = {}
        #: items by what became of them: used, other_policy, unknown_features, lacked_input, under_control, incomplete,
        #: other_labels (of a job that stamped losses when they were sent again), old, contradictory
        self.counts: Counter[str] = Counter()

    def ap(self, ap_id: str) -> Ap:
        """The AP's state, made when it is new."""
        found = self.aps.get(ap_id)
        if found is None:
            found = self.aps[ap_id] = Ap(ap_id, self.settings, self._fitter)
        return found

    def add(self, item: Item, now_us: int, offset: int = -1) -> str:
        """Take one item; what became of it, a key of `counts`. `offset` is its place in Kafka, kept with it."""
        fate = self._fate(item, now_us, offset)
        self.counts[fate] += 1
        return fate

    def _fate(self, item: Item, now_us: int, offset: int) -> str:
        if item.policy != RWND_FAIR:
            return "other_policy"
        if (
            not item.features
            or self._features is not None
            and self._features.get(item.feature_hash) != len(item.features)
        ):
            return "unknown_features"
        if item.lacked_input:
            return "lacked_input"
        if item.under_control:
            return "under_control"
        if not item.complete:
            return "incomplete"
        if item.loss_permille_resent < 0:
            return "other_labels"
        ap = self.ap(item.ap_id)
        ap.last_added_us = now_us
        return ap.add(item, self._label_window_us, offset) or "used"

    def changed(self) -> list[str]:
        """APs that have new items since their last decision."""
        return [ap_id for ap_id, ap in self.aps.items() if ap.changed]

    def decide(self, now_us: int, ap_ids: Iterable[str] | None = None) -> Iterator[Decision]:
        """A decision for each of these APs (None: those that changed).

        One that says `shipped` takes effect with `shipped()`.
        """
        for ap_id in self.changed() if ap_ids is None else ap_ids:
            yield self.aps[ap_id].decide(now_us)

    def shipped(self, decision: Decision, bundle_id: int) -> None:
        """The decision's tree has been released; it is in force from now on."""
        self.aps[decision.ap_id].shipped(decision, InForce(bundle_id, decision.tree))

    def drop(self, ap_ids: Iterable[str]) -> None:
        """Forget these APs: they belong to another trainer now."""
        for ap_id in list(ap_ids):
            self.aps.pop(ap_id, None)

    def forget_silent(self, now_us: int) -> list[str]:
        """Forget APs that have sent nothing for `forget_s`; their names."""
        silent = [ap_id for ap_id, ap in self.aps.items() if now_us - ap.last_added_us > self.settings.forget_s * 1e6]
        self.drop(silent)
        return silent
