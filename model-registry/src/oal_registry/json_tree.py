"""A tree as JSON, complete: every column of the node table, with the names of its features and the hash of their
program.
"""

from __future__ import annotations

import json

import numpy as np
from oal_schema.nodes import BundleError
from oal_schema.tree import Tree

from oal_registry.errors import RegistryError
from oal_registry.programs import Program, known

FORMAT = "oal-tree/1"


def dumps(tree: Tree, program: Program) -> str:
    """The tree as one line of JSON."""
    value = {
        "format": FORMAT,
        "feature_program": program.hash.hex(),
        "features": list(program.features),
        "feature": tree.feature.tolist(),
        "threshold": tree.threshold.tolist(),
        "right": tree.right.tolist(),
        "missing_right": np.flatnonzero(tree.missing_right).tolist(),
        "leaf_class": tree.leaf_class.tolist(),
        "leaf_permille": tree.leaf_permille.tolist(),
    }
    return json.dumps(value, indent=None, separators=(",", ":")) + "\n"


def loads(text: str) -> tuple[Tree, Program]:
    """Inverse of `dumps`; RegistryError on anything else. The tree is well formed."""
    try:
        value = json.loads(text)
        if value["format"] != FORMAT:
            raise ValueError(f"format is {value['format']!r}, not {FORMAT}")
        program = known().get(bytes.fromhex(value["feature_program"]))
        if program is None:
            raise ValueError(f"feature program {value['feature_program'][:12]} is not one of this platform's")
        n = len(value["feature"])
        missing = np.zeros(n, bool)
        missing[np.array(value["missing_right"], np.int64)] = True
        tree = Tree(
            np.array(value["feature"], np.int32),
            np.array(value["threshold"], np.int64),
            np.array(value["right"], np.int32),
            missing,
            np.array(value["leaf_class"], np.uint8),
            np.array(value["leaf_permille"], np.uint16).reshape(n, 3),
            program.feature_hash,
        )
        tree.check(len(program.features))
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, BundleError) as error:
        raise RegistryError(f"not a tree in JSON: {error}") from None
    except RecursionError:
        raise RegistryError("not a tree in JSON: it is nested too deeply") from None
    return tree, program
