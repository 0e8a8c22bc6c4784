"""How far a policy goes, least first. A bundle without a policy is OFF."""

OFF, SHADOW, ENFORCE = 0, 1, 2
MODES = {"off": OFF, "shadow": SHADOW, "enforce": ENFORCE}
