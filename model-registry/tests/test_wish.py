"""What tags ask for, and the tags that are refused; configuration files with mistakes."""

from __future__ import annotations

import pytest
import yaml
from oal_registry import service, wish
from oal_registry.errors import NotPackagable, RegistryError
from oal_registry.server import ServerConfig
from processes import secret

CANARY = service.load_settings(str(service.SETTINGS))["canary"] | {"soak_s": 300.0}
REST = {"activate_in_s": 0, "metric": "", "limit": None, "deadline_s": 86400}


def staged(shares: list[float], soak_s: float, min_aps: int, min_onsets: int, **more) -> dict:
    evidence = {"soak_s": soak_s, "min_aps": min_aps, "min_onsets": min_onsets}
    steps = [{"share": share, **evidence} for share in shares]
    return {"share": shares[0], "soak_s": soak_s, "steps": steps, **REST, **more}


def test_defaults():
    assert wish.of_tags({"note": "x"}, "champion", CANARY) == wish.Wish("fleet", False, None)
    assert wish.of_tags({}, "canary", CANARY).rollout == staged([0.1, 0.5, 1], 300, 0, 30)
    assert wish.of_tags({"rollout.soak_s": "60"}, "champion", CANARY).rollout == staged([1], 60, 1, 0)
    assert wish.of_tags({"site": "hall-7", "pin": "TRUE"}, "challenger", CANARY) == wish.Wish("site/hall-7", True, None)


@pytest.mark.parametrize(
    "tags, slot, rollout",
    [
        ({"rollout.canary_share": "0.25"}, "canary", staged([0.25, 0.5, 1], 300, 0, 30)),
        ({"rollout.canary_share": "0.25", "rollout.soak_s": "0"}, "canary", staged([0.25], 0, 0, 30)),
        ({"rollout.canary_share": "0.25"}, "champion", staged([0.25], 0, 1, 0)),
        ({"rollout.canary_share": "0.25", "rollout.soak_s": "60"}, "champion", staged([0.25, 1], 60, 1, 0)),
        (
            {"rollout.steps": "0.2 1", "rollout.soak_s": "60", "rollout.min_aps": "5", "rollout.min_onsets": "9"},
            "champion",
            staged([0.2, 1], 60, 5, 9),
        ),
        (
            {"rollout.metric": "rtt_rise", "rollout.limit": "0.5", "rollout.deadline_s": "600"},
            "canary",
            staged([0.1, 0.5, 1], 300, 0, 30, metric="rtt_rise", limit=0.5, deadline_s=600),
        ),
    ],
)
def test_steps(tags, slot, rollout):
    assert wish.of_tags(tags, slot, CANARY).rollout == rollout


@pytest.mark.parametrize(
    "tags, said",
    [
        ({"site": "a/b"}, "a site is 1 to 64"),
        ({"site": "x" * 65}, "a site is 1 to 64"),
        ({"pin": "perhaps"}, "neither true nor false"),
        ({"rollout.canary_share": "1.01"}, "not a number from 0 to 1"),
        ({"rollout.canary_share": "nan"}, "not a number"),
        ({"rollout.limit": "inf"}, "not a number"),
        ({"rollout.metric": "Rejected; DROP"}, "not the name of a metric"),
        ({"rollout.metric": "rejected_share"}, "no value to abort at"),
        ({"rollout.metric": "rejected_ratio", "rollout.limit": "0.05"}, "known are rejected_share, onset_recall_drop"),
        ({"rollout.steps": "0.5 0.1"}, "each greater than the one before"),
        ({"rollout.steps": ""}, "1 to 8 shares"),
        ({"rollout.steps": "all"}, "not a number"),
        ({"rollout.min_aps": "0"}, "not a number from 1"),
        ({"rollout.soak_s": "-1"}, "not a number from 0"),
    ],
)
def test_refused(tags, said):
    with pytest.raises(NotPackagable, match=said):
        wish.of_tags(tags, "canary", CANARY)


def test_the_committed_settings_are_read():
    assert service.load_settings(str(service.SETTINGS))["canary"]["steps"] == [0.1, 0.5, 1]


@pytest.mark.parametrize(
    "change, said",
    [
        ({"listen": "5000"}, "is not HOST:PORT"),
        ({"listen": None}, "`listen` is missing"),
        ({"listem": "x"}, "unknown setting listem; there are"),
        ({"listen": "0.0.0.0:5000"}, "name the host names that browsers use"),
        ({"users": [{"user": "admin", "password_file": "{file}"}]}, "is there twice"),
        (
            {"users": [{"user": "x", "password_file": "{file}", "role": "god"}]},
            "role `god` is none of viewer, owner, admin",
        ),
        ({"admin": {"user": "admin", "password_file": "{open}"}}, "others may read it; run `chmod 600"),
        ({"admin": {"user": "admin", "password_file": "{short}"}}, "at least 12 characters"),
        ({"admin": {"user": "admin", "password_file": "{none}"}}, "No such file"),
    ],
)
def test_a_mistake_in_the_servers_configuration_is_named(tmp_path, change, said):
    files = {
        "file": secret(tmp_path / "p", "a good long password"),
        "open": str(tmp_path / "open"),
        "short": secret(tmp_path / "s", "short"),
        "none": str(tmp_path / "none"),
    }
    (tmp_path / "open").write_text("a good long password")
    (tmp_path / "open").chmod(0o644)
    good = {
        "listen": "127.0.0.1:5000",
        "state_dir": str(tmp_path / "state"),
        "admin": {"user": "admin", "password_file": "{file}"},
    }
    text = yaml.safe_dump({k: v for k, v in {**good, **change}.items() if v is not None})
    for name, path in files.items():
        text = text.replace("'{" + name + "}'", path)
    (tmp_path / "server.yaml").write_text(text)
    with pytest.raises(RegistryError, match=said):
        ServerConfig.load(str(tmp_path / "server.yaml"))
