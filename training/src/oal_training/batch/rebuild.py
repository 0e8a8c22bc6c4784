"""A version made again from what its run kept: data, settings, seeds. The same bytes, or what differs is named."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from oal_training import lineage
from oal_training.batch import data_sets, experiment, run, stored_tree
from oal_training.errors import TrainingError
from oal_training.lineage import TAG
from oal_training.stored import kept
from oal_training.stored.items import Items
from oal_training.tracking import Origin, Tracking, said


@dataclass(frozen=True)
class Rebuilt:
    """same: the tree has the bytes of the one that was registered; differs: what is not as it was then; sha256: of
    what was registered, and of what was made now.
    """

    what: str
    same: bool
    differs: tuple[str, ...]
    sha256: tuple[str, str]

    def said(self) -> str:
        """For people."""
        lines = [f"differs from then: {word}" for word in self.differs]
        then, now = self.sha256
        if self.same:
            return "\n".join([*lines, f"{self.what} was made again, byte for byte: SHA-256 {now} of the tree"])
        why = "" if self.differs else "; data, settings, code and libraries are as they were, so something else decides"
        return "\n".join([*lines, f"{self.what} is {then}, and what was made now is {now}{why}"])


def data(tracking: Tracking, found: Origin) -> Items:
    """The items that a run's model was fitted on, as they were kept. TrainingError when they are gone or changed."""
    digest = found.tags.get(data_sets.hash_tag(data_sets.TRAINING), "")
    if not digest:
        raise TrainingError(f"{found.what} kept no training data; only runs of `oal-train fit` since it does can be")
    mlflow = tracking.connect()
    name = kept.name(data_sets.TRAINING, digest)
    with tempfile.TemporaryDirectory(prefix="oal-kept-") as folder:
        with said(f"fetching {name} of {found.what}"):
            path = mlflow.MlflowClient().download_artifacts(found.run_id, name, folder)
        return kept.read(Path(path), digest)


def rebuild(tracking: Tracking, found: Origin, log=print) -> Rebuilt:
    """Fit again and compare. TrainingError when there is nothing to fit from, or the stored model is not the one that
    the run logged.
    """
    items = data(tracking, found)
    then = found.tags.get(stored_tree.HASH_TAG, "")
    stored = stored_tree.content_sha256(stored_tree.fetch(tracking, found))
    if stored != then:
        raise TrainingError(f"the model of {found.what} is not what its run logged: {stored}, then {then or 'unknown'}")
    spec = experiment.parse(found.experiment, f"experiment of {found.what}")
    log(f"{found.what}: {spec.name} on {items.describe()}")
    tree = run.as_tree(run.fit(items, spec, log))
    if tree is None:
        raise TrainingError(f"{found.what} is no tree")
    now = stored_tree.content_sha256(tree)
    return Rebuilt(found.what, now == then, tuple(differences(found.tags)), (then, now))


def differences(tags: dict[str, str]) -> list[str]:
    """Code and libraries that are not those of a run."""
    words = []
    then, now = tags.get(TAG + "git_revision", ""), lineage.git_revision()
    if then != now:
        words.append(f"code: {then or 'unknown'} then, {now or 'unknown'} now (`git worktree add DIR {then}`)")
    try:
        libraries = json.loads(tags.get(TAG + "environment", "{}"))
    except ValueError:
        libraries = {}
    here = lineage.environment()
    for name in sorted({*libraries, *here}):
        if libraries.get(name) != here.get(name):
            words.append(f"{name}: {libraries.get(name, 'none')} then, {here.get(name, 'none')} now")
    return words
