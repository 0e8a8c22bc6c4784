"""The modules as the command sees them."""
import pathlib
import sys

LAB = pathlib.Path(__file__).resolve().parents[2]
for folder in (LAB, LAB.parent / "schema/src", LAB.parent / "model-registry/src", LAB.parent / "training/src"):
    sys.path.insert(0, str(folder))
