"""Whether a version may be champion: it and the one in force on the same kept items, by the judge of training.

Both trees are taken as access points run them: the candidate's compiled, that in force out of its signed bundle. The
items are those that the run of the later fitted one held out, so neither learned from them. A policy that learns from
sessions of hosts has no items: what its run says of networks that were left out is asked for. What cannot be known is
refused; a person opens the gate with a tag that says why, and MLflow's server writes who.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from oal_schema.manifest import SESSION, known
from oal_schema.release import Release
from oal_schema.tree import MISSING, Tree

from oal_registry import programs
from oal_registry.errors import NotPackagable, RegistryError
from oal_registry.mlflow_client import Gone, MlflowRegistry
from oal_registry.models import CompiledModel
from oal_registry.promoter import OPEN, OPENED_BY
from oal_registry.status import Status

SLOT = "champion"  # canary and challenger are trials: nobody need show anything before one
SAID, SCORES = "oal.gate", "oal.gate.scores"  # tags of a version
MAX_TAG = 500  # characters
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class _Run:
    """What a run says of its items. until_us: instant of the last that its model was fitted on; sha256: of those that
    it held out, "" for none.
    """

    run_id: str
    until_us: int
    sha256: str


class Gate:
    """Of one policy. `required` False lets everything in: for tests and for owners who judge elsewhere."""

    def __init__(self, registry: MlflowRegistry, policy: str, required: bool, status: Status):
        self.registry, self.policy, self.required, self.status = registry, policy, required, status
        self._verdicts: dict[tuple, object] = {}  # the latest one: a pass that Kafka cut off is made again

    def admit(self, version, own: CompiledModel, now: Release | None, returns: bool) -> str:
        """NotPackagable when the version may not take the place of `now`; else what its release says of that, "" when
        it passed. returns: it stood in this slot and scope before.
        """
        if not self.required:
            return ""
        if returns:
            return self._write(own, version, "returned", "it stood here before")
        why, who = version.tags.get(OPEN, "").strip(), version.tags.get(OPENED_BY, "")
        try:
            result, said = self._judged(version, own, now)
        except NotPackagable as refusal:
            if why and who:
                self._write(own, version, "opened", f"by {who}: {why} ({refusal})")
                return f"gate opened by {who}: {why}"
            self._write(own, version, "refused", str(refusal))
            hint = f"; set the tag {OPEN} again: nobody knows who set it" if why else ""
            raise NotPackagable(f"gate: {refusal}{hint}") from None
        self._write(own, version, result, said)
        return ""

    def _write(self, own: CompiledModel, version, result: str, said: str) -> str:
        self.status.count("oal_registry_gate_total", result=result)
        text = f"{result}: {said}"[:MAX_TAG]
        if version.tags.get(SAID) != text:
            self.registry.set_tag(own.plan.registered, own.version, SAID, text)
        return ""

    def _judged(self, version, own: CompiledModel, now: Release | None) -> tuple[str, str]:
        """(result, in words). NotPackagable says what is worse, or what is not known."""
        manifest = known().get(self.policy)
        if manifest is not None and manifest.label == SESSION:
            return self._by_figures(own, now)
        from oal_training.batch import gate as training_gate
        from oal_training.errors import TrainingError

        try:
            rules = training_gate.rules(self.policy)
            if now is None and not rules.rivals:
                return "first", "nothing is in force, and the policy asks for no comparison with a rule"
            key = own.name, own.run_id, now.hash if now else ""
            if key not in self._verdicts:
                items, training = self._items(own, now, set(rules.rivals) - {"persistence"})
                said = {own.name: _answers(own.table, items, own.name)}
                if now is not None:
                    name = f"{now.model}/{now.version} in force"
                    said[name] = _answers(now.bundle().tree, items, name)
                self._verdicts = {key: training_gate.judge(items, own.name, said, rules, training)}
        except TrainingError as error:
            raise NotPackagable(str(error)) from None
        verdict = self._verdicts[key]
        scores = {
            name: {figure: round(value, 4) for figure, value in figures.items() if np.isfinite(value)}
            for name, figures in verdict.scores.items()
        }
        text = json.dumps({"items": verdict.items, "onsets": verdict.onsets, **scores})
        self.registry.set_tag(own.plan.registered, own.version, SCORES, text[:MAX_TAG])
        if verdict.refused:
            raise NotPackagable(verdict.refused)
        return "passed" if now else "first", "; ".join(verdict.compared) or "nothing to compare with"

    def _by_figures(self, own: CompiledModel, now: Release | None) -> tuple[str, str]:
        """Of what its run says of networks that were left out."""
        from oal_training.cc_select import gate as training_gate
        from oal_training.errors import TrainingError

        figures = (self.registry.run_metrics(own.run_id) if own.run_id else None) or {}
        try:
            rules = training_gate.rules(self.policy)
        except TrainingError as error:
            raise NotPackagable(str(error)) from None
        verdict = training_gate.judge(figures, rules)
        shown = {name: round(value, 4) for name, value in training_gate.asked(figures, rules).items()}
        self.registry.set_tag(own.plan.registered, own.version, SCORES, json.dumps(shown)[:MAX_TAG])
        if verdict.refused:
            raise NotPackagable(verdict.refused)
        return "passed" if now else "first", "; ".join(verdict.compared)

    def _items(self, own: CompiledModel, now: Release | None, rules_asked: set[str]):
        """The kept items to judge by, of the later of the two, and those that the candidate was fitted on, None when
        nobody asks or they are not there; TrainingError or NotPackagable when there are none to judge by.
        """
        from oal_training.batch import data_sets
        from oal_training.stored import kept

        def run(run_id: str) -> _Run | None:
            tags = self.registry.run_tags(run_id) if run_id else None
            until, sha256 = ((tags or {}).get(tag, "") for tag in (data_sets.UNTIL_TAG, held_out))
            return _Run(run_id, int(until), sha256 if SHA256.fullmatch(sha256) else "") if until.isdigit() else None

        held_out = data_sets.hash_tag(data_sets.EVALUATION)
        mine, its = run(own.run_id), run(now.run_id) if now else None
        if mine is None:
            raise NotPackagable(
                f"nobody knows which items {own.name} was fitted on (tag {data_sets.UNTIL_TAG} of its run); register it"
                " with `oal-train fit --register`"
            )
        # An in-force model of unknown age may have learned from the items: that favours it, not the candidate.
        holder = its if its and its.sha256 and its.until_us > mine.until_us else mine
        if not holder.sha256:
            raise NotPackagable(f"the run of {own.name} held no items out (tag {held_out}): it had too few")
        def kept_items(run_id: str, role: str, sha256: str):
            with tempfile.TemporaryDirectory(prefix="oal-gate-") as folder:
                try:
                    path = self.registry.run_file(run_id, kept.name(role, sha256), Path(folder))
                except Gone:
                    path = None
                return None if path is None else kept.read(path, sha256)

        items = kept_items(holder.run_id, data_sets.EVALUATION, holder.sha256)
        if items is None:
            raise NotPackagable(f"the items that run {holder.run_id} held out are not there")
        if int(items.ts_us[0]) <= max(mine.until_us, holder.until_us):
            raise NotPackagable("the items held out are no later than those that it was fitted on")
        fitted = (self.registry.run_tags(own.run_id) or {}).get(data_sets.hash_tag(data_sets.TRAINING), "")
        wanted = rules_asked and SHA256.fullmatch(fitted)
        return items, kept_items(own.run_id, data_sets.TRAINING, fitted) if wanted else None


def _answers(table, items, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Class and probabilities of each item, as an access point says them."""
    if not isinstance(table, Tree):
        raise NotPackagable(f"{what} is no tree; nothing else can be compared")
    if not programs.begins(items.feature_hash, table.feature_hash) or len(items.classes) != 4:
        raise NotPackagable(f"{what} takes other features than the items held out have: they cannot be compared")
    leaf = table.apply(np.where(np.isnan(items.x), MISSING, items.x).astype(np.int64))
    rest = np.asarray(table.leaf_permille, float)[leaf] / 1000
    return np.asarray(table.leaf_class, np.int64)[leaf], np.column_stack([1 - rest.sum(axis=1), rest])


def required(text: str, where: str) -> bool:
    """From the setting `champion_gate`. RegistryError for another word."""
    if text not in ("required", "none"):
        raise RegistryError(f"{where} is `{text}`; it is `required`, or `none`")
    return text == "required"
