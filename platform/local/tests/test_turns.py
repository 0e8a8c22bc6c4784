"""Control of the live demo in turns."""
import time
from types import SimpleNamespace

from oal_local import turns
from oal_local.errors import PlatformError


class Push:
    """Keeps what was asked; refuses the first time, and to lift a switch that is not set."""

    def __init__(self):
        self.asked, self.away, self.off = [], True, False

    def get(self, path, body=None, method="GET"):
        if self.away:
            self.away = False
            raise PlatformError("no answer")
        if method == "DELETE" and not self.off:
            raise PlatformError("404: not turned off")
        self.off = method == "PUT"
        self.asked.append((method, path.partition("?")[0]))
        return {}


def platform(push=None, rows=None, log=print):
    return SimpleNamespace(push=push, log=log, clickhouse=SimpleNamespace(rows=rows))


def test_off_comes_first_and_control_is_on_at_the_end(monkeypatch):
    monkeypatch.setattr(turns, "RETRY_S", 0.001)
    push, said = Push(), []
    compared = turns.Turns(platform(push, log=said.append), "ap-1", 0.002, within_s=0.0085).start()
    compared._thread.join()
    compared.stop()
    assert [method for method, _ in push.asked] == ["PUT", "DELETE", "PUT", "DELETE"] and not said
    assert {path for _, path in push.asked} == {"/v1/control/kill/ap/ap-1"}
    assert [on for on, *_ in compared.done] == [False, True, False, True]
    assert all(before[2] <= after[1] for before, after in zip(compared.done, compared.done[1:]))


def test_an_end_amid_a_turn_without_control_lifts_the_switch(monkeypatch):
    monkeypatch.setattr(turns, "RETRY_S", 0.001)
    push, said = Push(), []
    push.away = False
    compared = turns.Turns(platform(push, log=said.append), "ap-1", 60).start()
    while not push.off:
        time.sleep(0.001)
    push.away = True  # at the end, once
    compared.stop()
    assert not push.off and not said
    monkeypatch.setattr(push, "get", lambda *_, **__: (_ for _ in ()).throw(PlatformError("no answer")))
    compared._off = True
    compared.stop()
    assert said == ["the kill switch of ap-1 could not be lifted: `ctl unkill` (no answer)"]


def test_each_turn_is_compared_with_the_one_after_it():
    def rows(sql):
        begun = int(sql.split("fromUnixTimestamp64Micro(")[1].split(")")[0]) // 1_000_000
        on = begun // 20 % 2
        if "oal.label" in sql:
            return [{"throughput": 10 - on, "lost": 30 - 20 * on, "offered": 0 if begun > 80 else 1000, "windows": 16}]
        return [{"n": 100, "mean": 100 - 60 * on, "p95": 120 - 60 * on}]

    compared = turns.Turns(platform(rows=rows), "ap-1", 20)
    compared.done = [(bool(i % 2), i * 20_000_000, (i + 1) * 20_000_000) for i in range(6)]
    found = turns.table(compared.pairs())
    assert found["delay"] == {"off": 100, "on": 40, "least": -60, "most": -60, "pairs": 2}, "nothing flowed in turn 5"
    assert (found["loss"]["off"], round(found["loss"]["on"], 9), round(found["loss"]["least"], 9)) == (3, 1, -2)
    assert "100         40 ms" in turns.lines(found, 20)
    assert "of the turns without control: a loss that control prevented is judged nowhere" in turns.lines(found, 20)


def test_nothing_is_said_before_two_turns_are_over():
    assert "not over yet" in turns.lines(turns.table([]), 20)
