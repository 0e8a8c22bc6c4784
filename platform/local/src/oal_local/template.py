"""Templates of config/: `${name}` placeholders; an unknown one is an error."""
from pathlib import Path
from string import Template


def fill(source: Path, **values) -> str:
    try:
        return Template(source.read_text()).substitute(values)
    except KeyError as name:
        raise KeyError(f"{source} has a placeholder {name} that nothing fills") from None
