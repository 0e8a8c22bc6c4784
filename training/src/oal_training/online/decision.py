"""What was decided about one freshly fitted tree, with the numbers compared."""

from __future__ import annotations

from dataclasses import dataclass

from oal_schema.tree import Tree

from oal_training.online.score import NONE, Score

# Reasons to hold.
TOO_FEW_ITEMS = "too_few_items"  # in the window, or in its test part
TOO_FEW_ONSETS = "too_few_onsets"  # in the test part; also when there is one class only
ONE_CLASS = "one_class"  # in the part that would be fitted on
PINNED = "pinned"  # a release forbids online trees here
NOT_COMPARABLE = "in_force_not_comparable"  # the tree in force has other features than the items
LOSES_TO_PERSISTENCE = "not_better_than_persistence"
LOSES_TO_COLUMN = "not_better_than_column"  # one column as it is foresees onsets as well
LOSES_TO_THRESHOLDS = "not_better_than_thresholds"  # two thresholds do
LOSES_TO_CHEAP = (LOSES_TO_PERSISTENCE, LOSES_TO_COLUMN, LOSES_TO_THRESHOLDS)
LOSES_TO_IN_FORCE = "not_better_than_in_force"
WORSE_ON_REFERENCE = "worse_on_reference"  # worse than the tree in force on the blocks that span the window
A_STRETCH_ONLY = "better_in_a_stretch_only"  # better on the whole, but not in most blocks of time
NOT_CLEARLY = "not_clearly_better"  # better, by less than the margins, and no drift
UNCONFIRMED = "unconfirmed"  # clearly better on the window; not yet shown by enough later blocks of items
TOO_SOON = "too_soon"  # after the last tree
JUST_PROMOTED = "just_promoted"  # a person made the tree in force champion a moment ago
# Reasons to ship.
FIRST, BETTER, DRIFT = "first", "better", "drift"
TO_SHIP = (FIRST, BETTER, DRIFT)
# Better by the margins, whether it is shipped now or not yet: such a tree is held against the items that come next.
CLEARLY_BETTER = (*TO_SHIP, UNCONFIRMED, TOO_SOON, JUST_PROMOTED)
POLICY = "policy"  # no new tree: the one in force, with the AP's policy of now


@dataclass(frozen=True)
class Decision:
    """One row of `tree_decision`, before it has a bundle.

    `tree` is the candidate, None when nothing was fitted; times in µs since 1970.
    """

    ap_id: str
    site: str
    ts_us: int
    shipped: bool
    reason: str
    items: int = 0
    train_items: int = 0
    test_items: int = 0
    test_onsets: int = 0
    train_until_us: int = 0
    test_until_us: int = 0
    candidate: Score = NONE
    in_force: Score = NONE
    persistence: Score = NONE
    column: Score = NONE  # the rules without fitting: persistence's classes
    thresholds: Score = NONE
    drift: float = 0.0
    fit_us: int = 0
    feature_hash: int = 0
    tree: Tree | None = None
    in_force_id: int = 0  # 63-bit number of the bundle in force, 0 for none
