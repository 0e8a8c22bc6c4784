"""docs/install-cluster.md from top to bottom on a node whose pods run: from a signed release with archives of images,
and nothing else, to the rows of an access point, also those that a dashboard asks for."""
import re
import time

import dashboard
import yaml
from conftest import HOST, PAGE, ROOT
from figures import measured
from installation import Installation
from newcomer import Newcomer
from node import PAUSE

#: The blocks in their order, by a word of each.
STEPS = ("make release", "minisign", "images import", "create namespace oal", "helm install", "ctl kill", "ctl ticket",
         "access-point.yaml", "v_aps", "delete namespace")
#: For a machine of two cores; the page asks for four.
SMALLER = {"resources": {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}}}


def timed(what: str, step, *arguments):
    began = time.monotonic()
    answer = step(*arguments)
    measured(what, time.monotonic() - began)
    return answer


def test_every_command_of_the_page_works_and_the_last_shows_the_access_points_rows(blocks, release, cluster, tmp_path):
    assert [step for step, text in zip(STEPS, blocks, strict=True) if step in text] == list(STEPS)
    folder, public = release
    (node,) = cluster.nodes
    assert [name for name in node.ctr("images", "ls", "-q").split() if not name.startswith("sha256:")] == [PAUSE]
    newcomer = Newcomer(tmp_path, tmp_path, {
        "PATH": f"{cluster.bin}:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(tmp_path), "OAL_RELEASE": str(folder),
        "OAL_PUBLIC_KEY": str(public), "OAL_HOST": HOST, "KUBECONFIG": str(cluster.kubeconfig),
        "CONTAINERD_ADDRESS": str(node.socket)
    }, cluster.inside)
    _, check, bring, namespace, install, switch, ticket, replay, rows, enough = blocks
    oal = Installation(cluster)
    board = dashboard.board(next(folder.glob("oal-*.tgz")), "oal-arriving")
    try:
        timed("the release checked", newcomer.types, check)
        timed("its images in the node", newcomer.types, bring)
        newcomer.types(namespace)
        (values,) = re.findall(r"`(helm show values [^`]+)`", (ROOT / "docs" / PAGE).read_text())
        assert newcomer.types(values).strip() == (ROOT / "helm/oal/values.yaml").read_text().strip()
        mine = newcomer.folder / "my.yaml"
        said = yaml.safe_load(mine.read_text())
        mine.write_text(yaml.safe_dump(said | {"clickhouse": said["clickhouse"] | SMALLER}))
        assert "ctl ticket AP_ID" in timed("helm install --wait, pods running", newcomer.types, install)
        assert "a rehearsal" in newcomer.types(switch)
        (asked,) = [line for line in switch.splitlines() if "ctl kills" in line]
        assert "nothing is switched off" in newcomer.types(asked)
        newcomer.types(ticket)
        timed("the access point enrolled and started", newcomer.types, replay)
        began = time.monotonic()
        oal.until("its rows, by the page's command", lambda: "ap-0007" in newcomer.types(rows, 60), 240)
        measured("its rows, by the page's query, after that", time.monotonic() - began)
        (row,) = oal.until("the access point, on a dashboard",
                           lambda: dashboard.rows(oal, board, "Access points"), 240)
        assert (row["ap_id"], row["site"]) == ("ap-0007", "hall-1") and row["kbytes_per_s"] > 0, row
        newcomer.types(enough)
        assert "access-points" not in cluster.kubectl("get", "namespaces", "-o", "name")
        assert oal.restarts() == {}
    except AssertionError as error:
        there = cluster.kubectl("-n", "access-points", "describe", "pods", check=False)
        there += cluster.kubectl("-n", "access-points", "logs", "ap-0007", "--all-containers", check=False)
        raise AssertionError(f"{error}\n{there[-4000:]}\n{oal.explain()}") from None
