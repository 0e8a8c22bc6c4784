"""Every command in docs/ is run here against a running platform, or says what it needs or which test runs it."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from flow import until
from pages import ROOT, blocks, commands

#: Commands of the cluster page outside its blocks, and the test that runs each; "": another's, nobody runs it here.
WITHIN = {"helm show values oal-*.tgz": "helm/cluster/page/test_page.py",
          "make release OAL_REGISTRY=registry.example.org/oal/": "platform/release/tests/test_whole.py",
          "helm upgrade": "helm/cluster/real/test_installed.py", "k3s ctr": "", "kind load image-archive": ""}
NEEDS = {"cluster", "docker", "ap"}
#: Languages of blocks that nobody types into a shell.
SHOWN = {"text", "yaml", "toml", "json"}

RUN = [block for block in blocks() if block.says == "run"]


@pytest.mark.parametrize("block", blocks(), ids=lambda b: f"{b.page}:{b.line}")
def test_a_block_of_commands_says_what_proves_it(block):
    if block.language in SHOWN:
        return
    assert block.language in (
        "sh", "sql"), f"{block.page}:{block.line}: a block is sh, sql or one of {', '.join(sorted(SHOWN))}"
    kind, _, value = block.says.partition("=")
    assert (
        block.says == "run" or (kind == "needs" and value in NEEDS) or kind == "tested"
    ), f"{block.page}:{block.line}: ```{block.language} run, needs={'|'.join(sorted(NEEDS))} or tested=PATH"
    if kind == "tested":
        assert (ROOT / value).exists(), f"{block.page}:{block.line}: there is no {value}"


@pytest.mark.parametrize("block", [b for b in blocks() if b.language == "sh"], ids=lambda b: f"{b.page}:{b.line}")
def test_a_shell_reads_every_block(block):
    """Those too that nobody runs here."""
    done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
    assert done.returncode == 0, f"{block.page}:{block.line}: {done.stderr}"


def test_the_cluster_page_has_no_command_that_its_test_leaves_out():
    """helm/cluster runs pages.commands("install-cluster.md", "helm/cluster"), top to bottom."""
    test = (ROOT / "helm/cluster/page/conftest.py").read_text()
    assert 'PAGE = "install-cluster.md"' in test and 'commands(PAGE, "helm/cluster")' in test
    mine = [block.text for block in blocks() if block.page == "install-cluster.md" and block.language == "sh"]
    assert mine == commands("install-cluster.md", "helm/cluster") and len(mine) >= 6


def test_a_command_within_a_sentence_of_the_cluster_page_says_what_runs_it():
    text = re.sub(r"^```.*?^```$", "", (ROOT / "docs/install-cluster.md").read_text(), flags=re.M | re.S)
    found = {" ".join(words.split()) for words in re.findall(r"`((?:make|helm|kubectl|ctr|k3s|kind)\s[^`]+)`", text)}
    assert found == WITHIN.keys()
    for file in filter(None, WITHIN.values()):
        assert (ROOT / file).exists()


@pytest.fixture
def platform(looped):
    """One whose access points predict, and whose predictions have met what came true."""
    until("predictions came true", lambda: looped.predictions("class != 'unknown'") > 50)
    return looped.platform


@pytest.mark.parametrize("block", RUN, ids=lambda b: f"{b.page}:{b.line}")
def test_a_command_works_as_it_stands(platform, block):
    if block.language == "sql":
        answer = platform.clickhouse.query(f"{block.text} FORMAT PrettyCompactMonoBlock", "analyst")
        print(answer)
        return
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OAL_")
                   } | {"OAL_STATE": str(platform.state.dir)}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=ROOT, env=environment,
                          capture_output=True, text=True, timeout=300)
    print(done.stdout[-2000:])
    assert done.returncode == 0, f"{block.page}:{block.line}: {done.stdout[-1000:]}{done.stderr[-2000:]}"


@pytest.mark.parametrize("path", ["docs/install-cluster.md", "docs/query.md", "helm/oal/templates/NOTES.txt"])
def test_a_password_that_begins_with_a_dash_is_no_option(path):
    """They are drawn from letters, digits, `-` and `_`: one in sixty begins with a dash."""
    found = re.findall(r"--password(.)", (ROOT / path).read_text())
    assert found and set(found) == {"="}
