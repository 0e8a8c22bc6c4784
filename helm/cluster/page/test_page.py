"""docs/install-cluster.md from top to bottom on a node whose pods run: from a signed release with archives of images,
and nothing else, to the rows of an access point."""
import subprocess
import uuid
from pathlib import Path

import images
import yaml
from access_point import HOST, AccessPoint
from installation import Installation
from pages import commands

PAGE = "install-cluster.md"
#: The blocks in their order, by a word of each.
STEPS = ("minisign", "images import", "create namespace", "helm install", "ctl kill", "ctl ticket", "v_aps")
#: For a machine of two cores; the page asks for four.
SMALLER = {"clickhouse": {"resources": {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}}}}


class ByTicket(AccessPoint):
    """Enrols with a ticket that somebody brings, by the release's own image of the exporter."""

    def enrol_with(self, ticket: Path) -> None:
        (self.folder / "ticket").write_bytes(ticket.read_bytes())
        self._own()
        self._container(f"{self.name}-enrol-{uuid.uuid4().hex[:6]}", ("--rm",), "sh", "-c",
                        "ap-exporter enrol -c /var/lib/oal/config - </var/lib/oal/ticket")


def test_every_command_of_the_page_works_and_the_last_shows_the_access_points_rows(release, cluster, tmp_path,
                                                                                 monkeypatch):
    blocks = commands(PAGE, "helm/cluster")
    assert [step for step, text in zip(STEPS, blocks, strict=True) if step in text] == list(STEPS)
    folder, public = release
    environment = {
        "PATH": f"{cluster.bin}:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(tmp_path), "OAL_RELEASE": str(folder),
        "OAL_PUBLIC_KEY": str(public), "OAL_HOST": HOST, "KUBECONFIG": str(cluster.kubeconfig),
        "CONTAINERD_ADDRESS": str(cluster.nodes[0].socket)
    }

    def run(text: str, seconds: float = 1200) -> str:
        """As somebody types it, in the release's folder, who stops at an error."""
        done = subprocess.run([*cluster.inside, "bash", "-euo", "pipefail", "-c", text], cwd=folder, env=environment,
                              capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, f"{text}\n{done.stdout[-1500:]}{done.stderr[-3000:]}"
        return done.stdout

    check, bring, namespace, install, switch, ticket, rows = blocks
    oal = Installation(cluster)
    run(check)
    run(bring)
    run(namespace)
    mine = folder / "my.yaml"
    mine.write_text(yaml.safe_dump(yaml.safe_load(mine.read_text()) | {
        "clickhouse": yaml.safe_load(mine.read_text())["clickhouse"] | SMALLER["clickhouse"]}))
    try:
        notes = run(install)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{oal.explain()}") from None
    assert "ctl ticket AP_ID" in notes
    assert "a rehearsal" in run(switch)
    run(ticket)
    known, tag = images.tags(), folder.name.removeprefix("oal-")
    monkeypatch.setattr(images, "tags", lambda: known | {"OAL_EXPORTER_IMAGE": f"oal-exporter:{tag}"})
    ap = ByTicket(oal, "ap-0007")
    ap.enrol_with(folder / "ticket")
    ap.start()
    try:
        oal.until("the access point's rows, by the page's command", lambda: "ap-0007" in run(rows, 60), 240)
    finally:
        ap.stop()
