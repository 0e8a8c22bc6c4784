"""An installation of version 0.2.0 with its own programs: its platform, access points that send, rows; it ends in the
middle of them. Run by test_upgrade.py as a program of its own, since it imports that version's modules.

usage: earlier_platform.py TREE STATE OUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TREE, STATE, OUT = (Path(word) for word in sys.argv[1:])
sys.path[:0] = [str(TREE / folder) for folder in ("schema/src", "local/src", "tests")]

from flow import until, until_rows_flow  # noqa: E402
from oal_local import classdata  # noqa: E402
from oal_local.platform import Platform  # noqa: E402
from stored_rows import columns, rows, tables  # noqa: E402
from virtual_ap import VirtualFleet  # noqa: E402

STORED, WAITING = 60, 30  # batches: in ClickHouse, and in Kafka alone when the version changes
READY_SECONDS = 600  # that version's own limit is for a machine that does nothing else

# Archives of classes make the next start quicker: there is none.
classdata.ensure = lambda: None
Platform.wait_ready.__defaults__ = (READY_SECONDS,)


def main() -> None:
    with Platform(STATE, ports="auto", only=["data"], partitions=4) as platform:
        fleet = VirtualFleet(platform, seed=1).start()
        try:
            until_rows_flow(platform, fleet.ap_ids, STORED)
            for service in ("jobmanager", "taskmanager"):
                platform.stop(service)
            made = fleet.made()
            until(f"{WAITING} batches wait in Kafka", lambda: fleet.made() >= made + WAITING)
            fleet.stop()
            ledger = fleet.ledger(platform)
        except BaseException:
            fleet.abandon()
            raise
        stored = {table: {"columns": (of := columns(platform, table)), "rows": rows(platform, table, of)}
                  for table in tables(platform)}
        OUT.write_text(json.dumps({
            "ledger": [[*key, number] for key, number in ledger.items()], "tables": stored,
            "access_points": {ap: [fleet.begin_us(ap), fleet.end_us(ap)] for ap in fleet.ap_ids}
        }))


if __name__ == "__main__":
    main()
