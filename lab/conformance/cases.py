"""All cases, in the order in which they are played."""
from . import cases_clamp, cases_control, cases_direction, cases_failure, cases_input, cases_mark, cases_mark_agent
from .case import Case


def found(module) -> list[Case]:
    return [
        kind() for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Case) and kind.__module__ == module.__name__ and kind.name
    ]


CASES: list[Case] = [
    case
    for module in (cases_clamp, cases_direction, cases_input, cases_failure, cases_control, cases_mark,
                   cases_mark_agent)
    for case in found(module)
]
