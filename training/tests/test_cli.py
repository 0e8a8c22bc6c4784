"""The command line and the service's configuration: help, and errors that say what to do."""

from __future__ import annotations

import pytest
import yaml
from oal_schema import keys
from oal_schema.grant import grant
from oal_training.cli import main
from oal_training.errors import TrainingError
from oal_training.online import config
from oal_training.online.service import Service


def test_help_lists_the_commands_of_every_part(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "online" in out and "retrain each AP's tree every second" in out


def test_an_unreadable_configuration_is_a_message(capsys, tmp_path):
    assert main(["online", "--config", str(tmp_path / "none.yaml")]) == 1
    assert "none.yaml cannot be read" in capsys.readouterr().err


GOOD = {
    "kafka": {"bootstrap.servers": "127.0.0.1:9"},
    "mlflow": None,
    "signing_key": "sign.pem",
    "trusted_keys": "trusted",
    "state_dir": "state",
    "listen": "127.0.0.1:0",
    "settings": None,
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kafka": {}}, "kafka is missing"),
        ({"kafka": {"a": 1}}, "bootstrap.servers"),
        ({"listen": "9000"}, "is not HOST:PORT"),
        ({"mlflow": {"uri": "x"}}, "tracking_uri, user and password_file"),
        ({"state_dir": ""}, "state_dir is missing"),
        ({"speed": 1}, "speed is unknown"),
        ({"settings": "/nowhere/online.yaml"}, "cannot be read"),
    ],
)
def test_configuration_errors_name_the_field(tmp_path, change, words):
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump(GOOD))
    assert config.load(str(file)).listen == ("127.0.0.1", 0)
    file.write_text(yaml.safe_dump({**GOOD, **change}))
    with pytest.raises(TrainingError, match=words):
        config.load(str(file))


def test_a_key_that_is_none_is_refused(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(
        yaml.safe_dump({**GOOD, "signing_key": str(tmp_path / "sign.pem"), "state_dir": str(tmp_path / "state")})
    )
    with pytest.raises(TrainingError, match="signing_key"):
        Service(config.load(str(file)))
    key = keys.make(tmp_path / "sign.pem")
    trusted = tmp_path / "trusted"
    for text, why in (
        (None, "trusted_keys: .*No such file"),
        ("x\n", "trusted_keys: .*trusted:1: not a key"),
        (keys.public_line(key, "old") + "\n", "does not say role=trainer of signing_key"),
        (keys.public_line(key, "registry", grant("registry")) + "\n", "does not say role=trainer of signing_key"),
    ):
        if text is not None:
            trusted.write_text(text)
        file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "trusted_keys": str(trusted)}))
        with pytest.raises(TrainingError, match=why):
            Service(config.load(str(file)))
    (tmp_path / "sign.pem").write_text("no key")
    with pytest.raises(TrainingError, match="signing_key"):
        Service(config.load(str(file)))
