"""A whole big-endian MIPS access point in an emulator: its counts are right, and it does what a router does."""
import json
import re

import pytest
from system import cost, machine

CLIENT = "02:00:00:00:01:00"


def test_the_counts_are_what_is_known_of_them():
    known = cost.proof(machine.MIPS, shift=2)
    #: the instructions around the loop: a mark's own, and what the timer's interrupt may add to neither
    assert 0 <= known["loop_user"] - known["loop_user_known"] < 50, known
    assert known["calls"] == pytest.approx(known["calls_by_the_clock"], rel=1e-3), known
    assert known["calls_kernel"] > known["calls_user"] > 100_000, known
    assert known["idle"] < known["idle_by_the_clock"] / 100, known


def test_a_router_that_masquerades_runs_the_package():
    package = machine.ROOT / "ap-exporter/files"
    shipped = cost.configuration(percent=7).replace("'/dev/null'", "'/tmp/ap-exporter.cap'")
    played = machine.play(machine.MIPS, (machine.HERE / "guest/router.sh").read_text(), 2, {
        "/etc/config/ap-exporter": shipped, "/etc/rc.common": (machine.HERE / "guest/rc.common").read_text(),
        "/etc/init.d/ap-exporter": package / "ap-exporter.init"
    }, memory_mb=256, quiet_air=False)
    print("\n".join(played.console))
    assert played.lines("through") == ["the router: 1"]
    # 203.0.113.1 in the byte order of /proc: the server sees the router, not the client
    assert re.search(r"CB007102:1F90 CB007101:", played.lines("server's")[0])
    health = json.loads(played.lines("health")[0])
    assert health["packets"] > 1000 and health["ring_drops"] == 0 and health["sinks"]["file"]["errors"] == 0, health
    assert health["ticks_missed"] < health["ticks"] / 20, "a MIPS of 250 M instructions a second is nearly filled"
    assert " nobody " in played.lines("owner")[0], "not root"
    station, packet = (json.loads(played.lines(table)[0]) for table in ("station", "packet"))
    assert station["mac"] == CLIENT and station["tx_pkts"] > 1000
    assert packet["flow"] | {"client_port": 0, "id": ""} == {
        "id": "", "client": "192.168.10.2", "client_port": 0, "server": "203.0.113.2", "server_port": 8080,
        "station": CLIENT
    }, "identity before masquerading, with the station's own address"


def test_a_hundred_stations_leave_their_reader_time():
    """Each is read at each tick at first, which is more than the processor has: it has to be left to its reader too."""
    stations, config = 100, "/etc/config/ap-exporter"
    played = machine.play(machine.MIPS, f"access_point {stations}\nmodule\ntraffic 0 10\nsleep 2\n"
                          f"agent {config}\nsleep 4\nagent_says {config}\nagent_ends\n", 2, {
                              config: cost.configuration(percent=7, stations=stations)
                          })
    radio, = json.loads(played.lines("status")[0])["stations"]
    assert (radio["source"], radio["starts"], radio["records_lost"]) == ("module", 1, 0), radio
    assert radio["records"] > 20 * stations, radio
