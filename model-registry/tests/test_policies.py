"""Policies on their way into releases: the real MLflow, the real broker, the real service; and the commands."""

from __future__ import annotations

import dataclasses
import shutil

import pytest
from confluent_kafka import Producer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from oal_registry import cli
from oal_schema import bundle, release
from oal_schema.policy import ENFORCE, SHADOW, defaults, make
from oal_schema.policy_folder import SHIPPED
from topics import released
from waiting import until

pytestmark = pytest.mark.usefixtures("running")

SITE = "name: hall\nversion: {}\napplies_to: {}\nmode: enforce\ncontrol: {{target_us: {}}}\nweights: {{443: 2000}}\n"


@pytest.fixture
def policies(service):
    """The folder of the service, as shipped; so it is again afterwards."""
    yield service.policies
    for path in service.policies.glob("*.yaml"):
        path.unlink()
    shutil.copy(SHIPPED / "default.yaml", service.policies)
    until(lambda: service.health().get("status") == "ok" and service.metric("oal_registry_policies") == 1, "as shipped")


def default(folder, version: int, **control) -> None:
    """Write the fleet's policy as a person would: whole, under a name of its own first."""
    text = f"name: default\nversion: {version}\napplies_to: fleet\nmode: shadow\ncontrol: {control}\n"
    (folder / "new").write_text(text)
    (folder / "new").rename(folder / "default.yaml")


def opened(release, trusted, ap="ap-1", site="here", in_force=None):
    return bundle.open_signed(release.signed, trusted, ap, site, in_force)


def with_policy(topics, slot, scope, name, version):
    def there():
        now = topics.in_force(slot, scope)
        held = now and now.bundle().policy
        return now if held and (held.name, held.version) == (name, version) else None

    return until(there, f"{slot}/{scope} has {name}/{version}")


def test_a_release_has_the_policy_of_the_folder_and_a_new_version_of_it_makes_it_anew(
    owner, topics, versions, trusted, service, clean, policies
):
    owner.alias("champion", versions[0])
    one = released(topics, "champion", versions[0])
    first = opened(one, trusted)
    assert first[0].policy == make("default", 1, SHADOW) and one.rank == one.serial and one.variant_of == ""
    assert [(r["policy"], r["policy_version"]) for r in topics.rows[-1:]] == [("default", 1)]

    default(policies, 2, target_us=8000)
    two = with_policy(topics, "champion", "fleet", "default", 2)
    content, _ = opened(two, trusted, in_force=first)
    assert content.policy.control == defaults() | {"target_us": 8000} and content.policy.mode == SHADOW
    assert content.tree.apply(first[0].golden).tolist() == first[0].tree.apply(
        first[0].golden
    ).tolist() and content.rollback_to == [first[1]]
    assert two.serial > one.serial and two.rank == one.serial, "an AP's newer online tree keeps its place"
    assert (two.version, two.run_id, two.pinned, two.rollout) == (one.version, one.run_id, one.pinned, one.rollout)
    assert two.reason == f"{one.reason}; policy default/2 shadow"
    assert topics.rows[-1]["policy_version"] == 2 and topics.rows[-1]["bundle"] == bundle.bundle_id(
        bytes.fromhex(two.hash)
    )

    history = len(topics.history)
    service.stop()
    service.start()
    service.wait_ready()
    service.passes()
    topics.read()
    assert len(topics.history) == history, "a restart sees that nothing is to be done"

    owner.unalias("champion")
    until(lambda: topics.in_force("champion") is None, "a release made anew is still the alias's")


def test_a_site_with_a_policy_has_a_variant_of_every_release_for_the_fleet(
    owner, topics, versions, trusted, service, clean, policies
):
    owner.alias("champion", versions[0])
    fleet = released(topics, "champion", versions[0])
    (policies / "hall.yaml").write_text(SITE.format(1, "site/hall-7", 9000))
    there = with_policy(topics, "champion", "site/hall-7", "hall", 1)
    content, digest = opened(there, trusted, site="hall-7", in_force=opened(fleet, trusted))
    assert (content.target, content.policy.mode, content.policy.weights, content.version) == (
        "site/hall-7",
        ENFORCE,
        {443: 2000},
        versions[0],
    )
    assert (there.variant_of, there.rank) == (fleet.hash, fleet.rank) and content.rollback_to[0] == bytes.fromhex(
        fleet.hash
    )
    assert topics.in_force("champion").hash == fleet.hash, "the fleet's stays"

    owner.alias("champion", versions[1])
    newer = released(topics, "champion", versions[1], "site/hall-7")
    assert newer.variant_of == topics.in_force("champion").hash
    assert opened(newer, trusted, site="hall-7", in_force=(content, digest))[0].policy == content.policy

    owner.alias("canary", versions[2])
    canary = released(topics, "canary", versions[2], "site/hall-7")
    assert canary.rollout == topics.in_force("canary").rollout and canary.bundle().policy.name == "hall"
    owner.unalias("canary")
    until(lambda: topics.in_force("canary", "site/hall-7") is None, "its variant goes with the canary")

    (policies / "hall.yaml").unlink()
    until(lambda: topics.in_force("champion", "site/hall-7") is None, "without a policy, no variant")
    back = topics.in_force("champion")
    assert bytes.fromhex(back.hash) in newer.bundle().rollback_to, "an AP may go back to the fleet's"
    owner.unalias("champion")
    released(topics, "champion", versions[0])


def test_a_sites_own_champion_has_its_policy_and_an_ap_one_of_the_fleets(
    owner, topics, versions, trusted, clean, policies
):
    owner.alias("champion", versions[0])
    released(topics, "champion", versions[0])
    (policies / "hall.yaml").write_text(SITE.format(1, "site/hall-7", 9000))
    with_policy(topics, "champion", "site/hall-7", "hall", 1)
    own = owner.register(7, tags={"site": "hall-7"})
    owner.alias("champion", own)
    there = released(topics, "champion", own, "site/hall-7")
    assert there.variant_of == "" and opened(there, trusted, site="hall-7")[0].policy.name == "hall"
    (policies / "one.yaml").write_text(SITE.format(1, "ap/ap-9", 7000).replace("hall", "one"))
    single = with_policy(topics, "champion", "ap/ap-9", "one", 1)
    assert single.version == versions[0] and opened(single, trusted, ap="ap-9")[0].policy.control["target_us"] == 7000
    assert topics.in_force("champion", "site/hall-7").hash == there.hash
    owner.unalias("champion")
    again = until(
        lambda: (now := topics.in_force("champion", "site/hall-7")) and now.variant_of and now,
        "the fleet's model with the site's policy again",
    )
    assert again.version == versions[0]


def test_a_folder_that_is_wrong_changes_nothing_and_promotions_go_on(owner, topics, versions, service, clean, policies):
    owner.alias("champion", versions[0])
    one = released(topics, "champion", versions[0])
    default(policies, 1, target_us=9999)
    problem = until(lambda: service.health()["problems"].get("policies"), "said in /healthz")
    assert "default.yaml: it changed, and its version is still 1; raise it" in problem["what"]
    (policies / "bad.yaml").write_text(
        "name: bad\nversion: 1\napplies_to: site/x\nmode: enforce\ncontrol:\n  ttl_us: 5\n"
    )
    until(
        lambda: "bad.yaml:6: ttl_us 5; 100000 to 1000000" in service.health()["problems"]["policies"]["what"],
        "with file and line",
    )
    owner.alias("champion", versions[1])
    two = released(topics, "champion", versions[1])
    assert two.bundle().policy == one.bundle().policy
    (policies / "bad.yaml").unlink()
    default(policies, 3, target_us=9999)
    with_policy(topics, "champion", "fleet", "default", 3)
    assert "policies" not in service.health()["problems"]


# --- commands


@pytest.fixture
def run(capsys, owner, mlflow):
    """The command line; the owner's login comes back afterwards."""

    def run(*arguments) -> tuple[int, str, str]:
        code = cli.main([str(a) for a in arguments])
        return code, *capsys.readouterr()

    yield run
    type(owner)(mlflow.url, "owner", mlflow.passwords["owner"])


def test_check_says_what_files_say_and_what_they_would_change(
    run, owner, topics, versions, service, clean, policies, tmp_path
):
    code, out, _ = run("policies", "check")
    assert (
        code == 0
        and "default.yaml: default/1 for fleet: shadow, every number the default" in out
        and "an example, in force nowhere" in out
    )
    owner.alias("champion", versions[0])
    released(topics, "champion", versions[0])
    assert run("policies", "check", "--config", service.config)[1].endswith(
        "the releases in force have these policies: nothing would change\n"
    )
    shutil.copytree(service.policies, tmp_path / "next")
    default(tmp_path / "next", 2, alpha=2)
    (tmp_path / "next" / "hall.yaml").write_text(SITE.format(1, "site/hall-7", 9000))
    code, out, _ = run("policies", "check", tmp_path / "next", "--config", service.config)
    assert code == 0 and out.splitlines() == [
        "default.yaml: default/2 for fleet: shadow, alpha 2 (default 1)",
        (
            f"hall.yaml: hall/1 for site/hall-7: enforce, target_us 9000 (default {defaults()['target_us']}); port 443"
            " weighs 2000 permille"
        ),
        "would change champion/fleet: renew, policy default/1 (shadow) -> default/2 (shadow)",
        "would change champion/site/hall-7: variant, policy default/1 (shadow) -> hall/1 (enforce)",
    ]
    default(tmp_path / "next", 1, alpha=2)
    code, _, err = run("policies", "check", tmp_path / "next", "--config", service.config)
    assert code == 1 and "default.yaml: it changed, and its version is still 1, as in force; raise it" in err
    (tmp_path / "next" / "examples").mkdir()
    (tmp_path / "next" / "examples" / "x.yaml").write_text("name: y\n")
    code, _, err = run("policies", "check", tmp_path / "next")
    assert code == 1 and err == "examples/x.yaml:1: version is missing\n"


def test_package_takes_a_policy_file_or_that_of_the_folder(run, service, versions, trusted, policies, tmp_path):
    (policies / "hall.yaml").write_text(SITE.format(4, "site/hall-7", 9000))
    out, arguments = tmp_path / "a.bundle", (
        "package",
        "--config",
        service.config,
        "--version",
        f"congestion/{versions[0]}",
        "--out",
        tmp_path / "a.bundle",
    )
    for more, name, version in (
        ((), "default", 1),
        (("--target", "site/hall-7"), "hall", 4),
        (("--policy", SHIPPED / "examples" / "enforce.yaml"), "enforce", 1),
    ):
        code, said, err = run(*arguments, *more)
        assert code == 0 and f"policy {name}/{version} (" in said, err
        policy = bundle.open_signed(out.read_bytes(), trusted, "ap-1", "hall-7")[0].policy
        assert (policy.name, policy.version) == (name, version)
    (tmp_path / "bad.yaml").write_text(
        "name: bad\nversion: 1\napplies_to: fleet\nmode: enforce\ncontrol: {floor_mss: 3}\n"
    )
    code, _, err = run(*arguments, "--policy", tmp_path / "bad.yaml")
    assert code == 1 and "bad.yaml:5: floor_mss 3; 4 to 1000" in err


def test_a_forged_champion_is_counted_and_replaced_by_what_mlflow_says(
    owner, topics, versions, trusted, service, clean, policies, kafka
):
    owner.alias("champion", versions[0])
    good = released(topics, "champion", versions[0])
    stranger = Ed25519PrivateKey.generate()
    payload = bundle.encode(dataclasses.replace(good.bundle(), serial=good.serial + 1, model="congestion", version=77))
    key, value = release.record(
        "champion", "fleet", bundle.sign(payload, stranger), source="registry", model="congestion", version=77,
        run_id="", feature_hash=good.feature_hash, created_us=good.created_us,
    )
    producer = Producer(kafka.client("trainer"))
    producer.produce("ap.bundles.v1", key=key, value=value)
    assert producer.flush(20) == 0
    until(lambda: service.metric('oal_registry_records_refused_total{reason="unknown_key"}') == 1, "it is counted")
    again = released(topics, "champion", versions[0])
    content, _ = opened(again, trusted)
    assert again.serial > good.serial and content.version == good.version and content.policy == good.bundle().policy
    planted = [r for r in topics.history if r.version == 77]
    assert [r.serial for r in planted] == [good.serial + 1], "nothing of it was signed anew"
    topics.history.remove(planted[0])  # nobody wrote a row of it
    until(lambda: service.health().get("status") == "ok", "nothing stands there any more")
