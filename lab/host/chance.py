"""Sessions and drifts of a scenario drawn at random: the same seed gives the same run. Spans are drawn log-uniformly:
short is likelier.
"""
import math
import random

Span = tuple[float, float]


def source(seed: int, where: str, station: str) -> random.Random:
    """A stream of its own for each entry (and station): one that is added leaves the others as they were."""
    return random.Random(f"{seed} {where} {station}")


def draw(span: Span, chance: random.Random) -> float:
    low, high = span
    return chance.uniform(low, high) if low <= 0 else math.exp(chance.uniform(math.log(low), math.log(high)))


def arrivals(session: dict, duration_s: float, chance: random.Random) -> list[dict]:
    """What a session opens, in time order: connections that last as long as the user is active, or transfers of a size
    one after another.
    """
    found, at_s = [], draw(session["idle_s"], chance) * chance.random()
    while at_s < duration_s:
        stop_s = min(at_s + draw(session["active_s"], chance), duration_s)
        start_s = at_s
        while start_s < stop_s:
            found.append({
                "start_s": round(start_s, 2), "stop_s": round(stop_s,
                                                              2), "parallel": round(draw(session["parallel"], chance)),
                "rate_mbps": round(draw(session["rate_mbps"], chance),
                                   3), "size_kb": round(draw(session["size_kb"], chance))
            })
            if not session["size_kb"][1]:
                break
            start_s += draw(session["every_s"], chance)
        at_s = stop_s + draw(session["idle_s"], chance)
    return found


def levels(choices: list[dict], hold_s: Span, duration_s: float, chance: random.Random) -> list[tuple[float, dict]]:
    """(time, level) of a walk over the choices that never stays."""
    found, at_s, last = [], 0.0, None
    while at_s < duration_s:
        last = chance.choice([c for c in range(len(choices)) if c != last])
        found.append((round(at_s, 2), choices[last]))
        at_s += draw(hold_s, chance)
    return found
