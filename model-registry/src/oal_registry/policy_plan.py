"""Which releases have to be made anew, made or withdrawn, so that every access point has its policy.

Pure: releases and policies in, steps out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from oal_schema.bundle_law import RWND_FAIR
from oal_schema.policy import Policy
from oal_schema.policy_file import Policies
from oal_schema.release import Release
from oal_schema.release import key as release_key

FLEET = "fleet"


@dataclass(frozen=True)
class Step:
    """`renew`: the same models with another policy; `variant`: the fleet's models with the policy of a site or an
    access point; `withdraw`: of a variant. `before`: the policy that is in force there now; `of_policy`: folder of
    policies/ that it is about.
    """

    action: str
    slot: str
    scope: str
    policy: Policy | None
    before: Policy
    of_policy: str = RWND_FAIR

    def __str__(self) -> str:
        after = "the fleet's again" if self.action == "withdraw" else self.policy
        return f"{release_key(self.slot, self.scope, self.of_policy)}: {self.action}, policy {self.before} -> {after}"


def plan(
    slot: str, in_force: Mapping[tuple[str, str], Release], policies: Policies, policy_of: Callable[[Release], Policy]
) -> list[Step]:
    """Steps of one slot and one policy, in their order: the fleet's comes first, for variants are made of it."""
    here = {scope: release for (s, scope), release in in_force.items() if s == slot}
    base = here.get(FLEET)
    steps = []
    for scope in sorted(here, key=lambda s: (s != FLEET, s)):
        now = here[scope]
        superseded = base is not None and scope != FLEET and now.rank < base.rank
        if not now.variant_of and not superseded and policy_of(now) != policies.of(scope):
            steps.append(Step("renew", slot, scope, policies.of(scope), policy_of(now), policies.policy))
    wanted = (
        [scope for scope in policies.narrower() if policies.of(scope) != policies.of(FLEET)] if base is not None else []
    )
    steps += [
        Step("withdraw", slot, scope, None, policy_of(now), policies.policy)
        for scope, now in sorted(here.items())
        if now.variant_of and scope not in wanted
    ]
    for scope in wanted:
        now = here.get(scope)
        if now is not None and not now.variant_of and now.rank > base.rank:
            continue  # its own champion came later
        made_of = now is not None and (now.variant_of, now.rank, now.pinned, now.rollout) == (
            base.hash,
            base.rank,
            base.pinned,
            base.rollout,
        )
        if not made_of or policy_of(now) != policies.of(scope) or any(s.scope == FLEET for s in steps):
            before = policy_of(now if now is not None else base)
            steps.append(Step("variant", slot, scope, policies.of(scope), before, policies.policy))
    return steps
