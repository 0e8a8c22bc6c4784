"""A second policy beside rwnd-fair: releases of its own, its law in the bundle, nothing left when it goes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from oal_registry import package, programs, registered, service
from oal_registry.errors import NotPackagable
from oal_registry.gate import Gate
from oal_registry.mlflow_client import Gone
from oal_registry.models import CompiledModel
from oal_registry.policy_reconciler import PolicyReconciler
from oal_registry.promotion import Promotion
from oal_registry.release_topic import ReleaseTopic
from oal_registry.slot_memory import SlotMemory
from oal_registry.status import Status
from oal_registry.unlearned import Unlearned
from oal_schema import bundle, keys
from oal_schema.bundle_law import Law
from oal_schema.golden_bundles import random_tree
from oal_schema.grant import grant
from oal_schema.manifest import Manifest, ModelPlan, known
from oal_schema.policy import ENFORCE, SHADOW, make
from oal_schema.policy_file import PolicyFile
from oal_schema.policy_folder import PolicyFolder

PROGRAM = programs.of_name("congestion")
FAIR = known()["rwnd-fair"]
EXAMPLE = Manifest(
    name="example",
    title="Windows by class",
    program="congestion",
    label="congestion",
    models=(ModelPlan("class", "tree", "example"),),
    law=Law("direct", "flow", "rwnd", (0, 0, 60000, 30000)),
)
CAP = Manifest(
    name="cap", title="Caps", program="uploads", label="congestion", models=(), law=Law("backlog_cap", "flow", "rwnd")
)
CANARY = service.load_settings(str(service.SETTINGS))["canary"]


class Topic(ReleaseTopic):
    """The topic without Kafka; `records` are what it would hold."""

    def __init__(self):
        self.time_us = 1_000_000
        self.trusted = {}
        super().__init__({}, lambda: self.trusted, now_us=self._tick)
        self.records: dict[str, bytes | None] = {}

    def _tick(self) -> int:
        self.time_us += 1
        return self.time_us

    def _commit(self, key, value, row):
        self.records[key] = value


class Mlflow:
    """Aliases and versions of registered models, without a server."""

    def __init__(self, *names: str):
        self.models = {name: {} for name in names}
        self.tags: dict[tuple[str, int], dict[str, str]] = {}

    def aliases(self, name):
        return self.models.get(name)

    def version(self, name, version):
        if name not in self.models:
            raise Gone(f"no {name}/{version}")
        return SimpleNamespace(version=str(version), run_id="", tags=dict(self.tags.setdefault((name, version), {})))

    def versions(self, name, condition=""):
        return [self.version(name, version) for of, version in self.tags if of == name]

    def set_tag(self, name, version, tag, value):
        self.tags.setdefault((name, version), {})[tag] = value

    def delete_tag(self, name, version, tag):
        self.tags.get((name, version), {}).pop(tag, None)


class Compiled:
    """Models that need no compiling: the version is the tree's seed."""

    def __init__(self, manifest, registry):
        self.manifest, self.registry = manifest, registry

    def compiled(self, plan, version):
        tree = replace(random_tree(version, 9), feature_hash=PROGRAM.feature_hash)
        return CompiledModel(plan, version, "", PROGRAM, tree)


@pytest.fixture
def platform(tmp_path):
    """Two policies on one topic; `passes` is what the service does in a pass."""
    (tmp_path / "in-force").mkdir()
    (tmp_path / "in-force" / "default.yaml").write_text("name: default\nversion: 1\napplies_to: fleet\nmode: shadow\n")
    here = SimpleNamespace(topic=Topic(), mlflow=Mlflow("congestion", "example"), status=Status(lambda line: None))
    here.key = keys.make(tmp_path / "key.pem")
    here.topic.trusted[keys.key_id(here.key)] = keys.TrustedKey(here.key.public_key(), "test", grant("registry"))
    here.folder = PolicyFolder(tmp_path / "in-force")

    def start(*manifests):
        here.promotions = {
            m.name: Promotion(
                Compiled(m, here.mlflow),
                here.topic,
                here.key,
                SlotMemory(tmp_path / f"slots-{m.name}.json"),
                here.status,
                CANARY,
                here.folder,
                Gate(here.mlflow, m.name, False, here.status),
            )
            if m.models
            else Unlearned(m, here.topic, here.key, here.status, here.folder)
            for m in manifests
        }
        here.policies = PolicyReconciler(here.topic, here.folder, here.key, here.status, {m.name for m in manifests})

    def passes(n: int = 2) -> int:
        changes = 0
        for _ in range(n):
            here.policies.look()
            changes += here.policies.reconcile() + sum(p.reconcile() for p in here.promotions.values())
        return changes

    here.start, here.passes = start, passes
    start(FAIR, EXAMPLE)
    return here


def test_each_policy_has_releases_of_its_own_with_its_law_and_its_models(platform):
    platform.mlflow.models["congestion"]["champion"] = 3
    platform.mlflow.models["example"]["champion"] = 5
    assert platform.passes() == 2
    assert set(platform.topic.records) == {"champion/fleet", "champion/fleet/example"}
    fair, example = (platform.topic.of(name)["champion", "fleet"] for name in ("rwnd-fair", "example"))
    held = example.bundle()
    assert (held.of_policy, held.law, held.format, held.version) == ("example", EXAMPLE.law, 2, 5)
    assert (held.policy.name, held.policy.mode_name) == ("example", "shadow"), "without a file in force it is in shadow"
    assert (fair.bundle().format, fair.bundle().version) == (1, 3), "agents in the field read what they read"
    assert platform.mlflow.tags["example", 5]["oal.bundle.champion/fleet"] == example.hash
    assert platform.passes() == 0, "and it is done"


def test_an_alias_of_one_policy_leaves_the_others_alone(platform):
    platform.mlflow.models["congestion"]["champion"] = 3
    platform.mlflow.models["example"]["champion"] = 5
    platform.passes()
    fair = platform.topic.of("rwnd-fair")["champion", "fleet"]
    platform.mlflow.models["example"]["champion"] = 6
    platform.passes()
    now = platform.topic.of("example")["champion", "fleet"]
    assert now.version == 6 and len(now.bundle().rollback_to) == 1
    del platform.mlflow.models["example"]["champion"]
    platform.passes()
    assert platform.topic.of("example")["champion", "fleet"].reason.startswith("rollback: alias champion deleted")
    assert platform.topic.of("rwnd-fair")["champion", "fleet"] == fair


def test_a_file_in_force_is_about_its_policy_alone(platform):
    platform.mlflow.models["congestion"]["champion"] = 3
    platform.mlflow.models["example"]["champion"] = 5
    platform.passes()
    hall = PolicyFile(None, "site/hall", make("hall", 1, ENFORCE), "example")
    platform.folder.policies = replace(platform.folder.policies, others={"example": {"site/hall": hall}})
    platform.policies.look = lambda: True
    platform.passes()
    assert set(platform.topic.records) == {"champion/fleet", "champion/fleet/example", "champion/site/hall/example"}
    there = platform.topic.of("example")["champion", "site/hall"]
    assert there.variant_of and there.bundle().policy.mode_name == "enforce" and there.bundle().law == EXAMPLE.law


def test_a_policy_whose_folder_is_gone_leaves_nothing_in_force(platform):
    platform.mlflow.models["congestion"]["champion"] = 3
    platform.mlflow.models["example"]["champion"] = 5
    platform.passes()
    platform.start(FAIR)
    assert platform.passes() == 1
    assert platform.topic.records["champion/fleet/example"] is None and platform.topic.policies() == ["rwnd-fair"]


def test_a_law_that_changed_is_released_anew(platform):
    platform.mlflow.models["example"]["champion"] = 5
    platform.passes()
    other = replace(EXAMPLE, law=replace(EXAMPLE.law, values=(0, 0, 50000, 20000)))
    platform.start(FAIR, other)
    assert platform.passes() == 1
    assert platform.topic.of("example")["champion", "fleet"].bundle().law.values == (0, 0, 50000, 20000)


def test_a_model_that_a_policy_needs_and_that_has_no_alias_is_not_released(platform):
    two = replace(EXAMPLE, models=(*EXAMPLE.models, ModelPlan("depth", "tree", "depth")))
    platform.start(FAIR, two)
    platform.mlflow.models["example"]["champion"] = 5
    assert platform.passes() == 0 and not platform.topic.policies()
    platform.mlflow.models["depth"] = {"champion": 2}
    assert platform.passes() == 1
    held = platform.topic.of("example")["champion", "fleet"].bundle()
    assert [m.role for m in held.models] == ["class", "depth"]


def test_a_registered_model_belongs_to_the_policy_that_names_it():
    assert registered.manifest_of("congestion", "class") == FAIR
    assert registered.manifest_of("mine", "class").role("class").registered == "mine"
    assert {"congestion", "window"} <= set(registered.names())


def test_what_no_ap_would_take_is_said_when_the_bundle_is_made(tmp_path):
    tree = CompiledModel(
        EXAMPLE.models[0], 1, "", PROGRAM, replace(random_tree(1, 9), feature_hash=PROGRAM.feature_hash)
    )
    wrong = replace(EXAMPLE, law=Law("direct", "flow", "rwnd", (1, 2, 3)))
    options = {"target": "fleet", "serial": 1, "rollback_to": [], "key": keys.make(tmp_path / "k"), "policy": None}
    with pytest.raises(NotPackagable, match="unsupported_format: law direct has values"):
        package.build(wrong, [tree], **options)
    assert bundle.decode(bundle.split_signed(package.build(EXAMPLE, [tree], **options).signed)[0]).law == EXAMPLE.law


def files(platform, **scopes):
    """Files in force of policy `cap`: scope → (version, mode)."""
    made = {s: PolicyFile(None, s, make(s.replace("/", "-"), *what), "cap") for s, what in scopes.items()}
    platform.folder.policies = replace(platform.folder.policies, others={"cap": made} if made else {})
    platform.policies.look = lambda: True


def test_a_policy_without_a_model_is_released_where_a_file_in_force_is_about_it(platform):
    platform.start(FAIR, CAP)
    platform.mlflow.models["congestion"]["champion"] = 3
    assert platform.passes() == 1 and platform.topic.policies() == ["rwnd-fair"], "without a file nothing asks for it"
    files(platform, fleet=(1, SHADOW))
    assert platform.passes() == 1
    held = platform.topic.of("cap")["champion", "fleet"].bundle()
    assert (held.models, held.law, held.of_policy, held.policy.mode_name) == ([], CAP.law, "cap", "shadow")
    assert platform.passes() == 0, "and it is done"


def test_of_a_policy_without_a_model_too_files_that_change_are_followed(platform):
    platform.start(FAIR, CAP)
    files(platform, fleet=(1, SHADOW))
    platform.passes()
    files(platform, **{"fleet": (2, SHADOW), "site/hall": (1, ENFORCE)})
    platform.passes()
    there = {scope: r.bundle().policy for (_, scope), r in platform.topic.of("cap").items()}
    assert {s: (p.version, p.mode_name) for s, p in there.items()} == {
        "fleet": (2, "shadow"),
        "site/hall": (1, "enforce"),
    }
    files(platform, **{"site/hall": (1, ENFORCE)})
    platform.passes(3)
    assert list(platform.topic.of("cap")) == [("champion", "site/hall")], "no file is about the fleet any more"
    files(platform)
    platform.passes()
    assert not platform.topic.of("cap") and platform.passes() == 0


def test_a_law_without_a_model_that_changed_is_released_anew(platform):
    platform.start(FAIR, CAP)
    files(platform, fleet=(1, SHADOW))
    platform.passes()
    platform.start(FAIR, replace(CAP, program="congestion"))
    assert platform.passes() == 1
    assert platform.topic.of("cap")["champion", "fleet"].bundle().feature_hash == PROGRAM.feature_hash
