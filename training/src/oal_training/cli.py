"""`oal-train`: finds its commands. A part of the package adds commands by a module `oal_training.PART.command` with

    def register(add): parser = add("fit", help="…", description="…"); parser.add_argument(…);
        parser.set_defaults(run=run)

where `run(arguments)` returns the exit status (None is 0). Such a module imports what is heavy inside `run`, so that
`--help` and every other command stay quick.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import pkgutil
import sys

import oal_training
from oal_training.errors import TrainingError


def command_modules() -> list[str]:
    """Names of the modules `oal_training.*.command`, in alphabetical order."""
    parts = (p.name for p in pkgutil.iter_modules(oal_training.__path__) if p.ispkg)
    names = (f"oal_training.{part}.command" for part in sorted(parts))
    return [name for name in names if importlib.util.find_spec(name)]


def parser() -> argparse.ArgumentParser:
    """The parser with the commands of every part."""
    top = argparse.ArgumentParser(
        prog="oal-train",
        description=(
            "Train the models that run on access points: each second per AP (online), from stored items (batch), window"
            " model."
        ),
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in command_modules():
        importlib.import_module(name).register(commands.add_parser)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit status."""
    arguments = parser().parse_args(argv)
    try:
        return arguments.run(arguments) or 0
    except TrainingError as error:
        print(f"oal-train: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0
