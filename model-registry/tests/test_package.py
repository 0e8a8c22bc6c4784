"""Bundles from versions in MLflow: by command, and with a window model that is promoted by its own alias."""

from __future__ import annotations

import numpy as np
import pytest
from oal_registry import cli
from oal_registry.programs import by_name
from oal_schema import bundle, program_file
from owner import OALF, WINDOW_INPUTS, items
from sklearn.tree import DecisionTreeClassifier
from topics import released
from waiting import until

pytestmark = pytest.mark.usefixtures("running")
PROGRAM = by_name()["congestion"]


@pytest.fixture(scope="module")
def window(owner):
    return owner.register_window()


@pytest.fixture
def run(capsys, owner, mlflow):
    """The command line as the registry's user; the owner's login comes back afterwards."""

    def run(*arguments) -> tuple[int, str, str]:
        code = cli.main([str(a) for a in arguments])
        return code, *capsys.readouterr()

    yield run
    type(owner)(mlflow.url, "owner", mlflow.passwords["owner"])


def test_package_writes_what_an_ap_takes_and_what_predicts_as_scikit_learn_does(
    run, service, owner, versions, window, trusted, tmp_path
):
    out = tmp_path / "a.bundle"
    code, said, err = run(
        "package",
        "--config",
        service.config,
        "--version",
        f"congestion/{versions[0]}",
        "--window",
        f"window/{window}",
        "--target",
        "site/hall-7",
        "--out",
        out,
    )
    assert code == 0 and "window model within" in said, err
    content, digest = bundle.open_signed(out.read_bytes(), trusted, "ap-1", "hall-7")
    assert digest.hex() in said and content.window.inputs.tolist() == WINDOW_INPUTS and content.golden is not None
    x, _ = items(1, 2000)
    model = owner.mlflow.sklearn.load_model(f"models:/congestion/{versions[0]}")
    assert np.array_equal(content.tree.predict(x), model.predict(x.astype(np.float32)))
    assert run("export", "--config", service.config, f"congestion/{versions[0]}")[1] == run("export", out)[1]


def test_a_version_of_an_earlier_release_goes_on_after_an_upgrade(run, service, owner, trusted, tmp_path):
    earlier, whole = PROGRAM.beginning(45), PROGRAM
    x, y = items(3)
    estimator = DecisionTreeClassifier(max_leaf_nodes=12, random_state=3).fit(x[:, :45], y)
    program = program_file.to_bytes(list(earlier.words), earlier.decision_interval_us)
    version = owner.register(3, estimator=estimator, program=program)
    out = tmp_path / "a.bundle"
    code, _, err = run("package", "--config", service.config, "--version", f"congestion/{version}", "--out", out)
    assert code == 0, err
    content, _ = bundle.open_signed(out.read_bytes(), trusted, "ap-1", "hall-7")
    assert content.feature_hash == content.tree.feature_hash == whole.feature_hash
    assert np.array_equal(content.tree.predict(x), estimator.predict(x[:, :45].astype(np.float32)))


def test_package_says_why_not(run, service, owner, versions, tmp_path):
    for arguments, said in (
        (("--version", "congestion/999"), "congestion/999"),
        (("--version", f"congestion/{versions[0]}", "--target", "somewhere"), "none of fleet, site/SITE, ap/AP_ID"),
        (("--version", f"congestion/{versions[0]}", "--window", f"congestion/{versions[0]}"), "inputs.json"),
        (("--version", f"congestion/{versions[0]}", "--rollback-to", "abc"), "hexadecimal"),
    ):
        code, _, err = run("package", "--config", service.config, "--out", tmp_path / "x", *arguments)
        assert code == 1 and said in err, err
    assert not (tmp_path / "x").exists()


def test_the_champion_of_the_window_model_goes_with_the_tree(owner, topics, versions, window, service, clean):
    owner.alias("champion", versions[0])
    alone = released(topics, "champion", versions[0])
    assert bundle.decode(bundle.split_signed(alone.signed)[0]).window is None
    owner.alias("champion", window, "window")
    try:
        both = until(
            lambda: (now := topics.in_force("champion")).hash != alone.hash and now, "released with the window model"
        )
        assert both.version == versions[0] and f"with window/{window}" in both.reason
        assert bundle.decode(bundle.split_signed(both.signed)[0]).window.inputs.tolist() == WINDOW_INPUTS
        service.stop()
        service.start()
        service.wait_ready()
        topics.read()
        assert topics.history[-1].hash == both.hash, "a restart sees that nothing is to be done"

        other = bytearray(OALF.read_bytes())
        other[-1] ^= 1
        stranger = owner.register_window(2, bytes(other))
        owner.alias("champion", stranger, "window")
        error = until(lambda: owner.tags(versions[0]).get("oal.error"), "refused")
        until(
            lambda: owner.tags(stranger, "window").get("oal.error") == error, "the window model's version says so too"
        )
        assert "feature_mismatch" in error and topics.in_force("champion").hash == both.hash
    finally:
        owner.unalias("champion", "window")
    gone = until(
        lambda: (now := topics.in_force("champion")).hash != both.hash and now, "released without the window model"
    )
    assert bundle.decode(bundle.split_signed(gone.signed)[0]).window is None
    until(lambda: "oal.error" not in owner.tags(versions[0]), "the error is gone")
