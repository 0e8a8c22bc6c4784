"""The push service of the cases of control: the exporter's own test service (HTTPS with client certificates), one
bundle, and a kill switch on standard input.

usage: push.py FOLDER AP '{"noise_dbm": null or N, "policy": {…}, "marks": bool}'. Makes certificates and keys in FOLDER
and prints the port. The bundle's tree is one leaf, Bad; or, with noise_dbm, Bad while the channel's noise is above it
and Good otherwise. With marks it is one of the policy `mark`, which has no tree. Lines "off", "on" throw
the kill switch, "lost" ends the service. Runs under the Python of schema/requirements.txt.
"""
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ap-exporter/tests"), str(ROOT / "schema/src")]
from oal_schema import policy  # noqa: E402
from oal_schema.bundle_law import Law  # noqa: E402
from oal_schema.program_file import from_bytes, program_hash  # noqa: E402
from oal_schema.settings import generated  # noqa: E402
from oal_schema.tree import Tree  # noqa: E402
from push_service import Authority, Maker, Service, bundles  # noqa: E402

GOOD, BAD = 0, 3


def tree(noise_dbm: int | None, names: list[str], feature_hash: int) -> Tree:
    """One leaf, Bad; or a split by the noise, above it Bad."""
    split = noise_dbm is not None
    leaves = [GOOD, GOOD, BAD] if split else [BAD]
    return Tree(feature=np.array([names.index("noise_dbm"), -1, -1] if split else [-1],
                                 np.int32), threshold=np.array([noise_dbm, 0, 0] if split else [0], np.int64),
                right=np.array([2, 0, 0] if split else [0], np.int32), missing_right=np.zeros(len(leaves), bool),
                leaf_class=np.array(leaves,
                                    np.uint8), leaf_permille=np.array([[0, 0, 1000 if c == BAD else 0] for c in leaves],
                                                                      np.uint16), feature_hash=feature_hash)


def of_windows(maker: Maker, noise_dbm: int | None, numbers: policy.Policy) -> bundles.Bundle:
    words, interval_us = maker.program()
    names = next(p["features"] for p in generated()["programs"] if p["name"] == "congestion")
    made = tree(noise_dbm, names, int.from_bytes(program_hash(words, interval_us)[:8], "big"))
    return bundles.Bundle(maker.serial, "fleet", "registry", "congestion", 1, [], words, interval_us,
                          bundles.models_of(made), policy=numbers)


def of_marks(maker: Maker, numbers: policy.Policy) -> bundles.Bundle:
    words, interval_us = from_bytes((ROOT / "schema/generated/features/marks.oalf").read_bytes())
    return bundles.Bundle(maker.serial, "fleet", "registry", "mark", 1, [], list(words), interval_us, [],
                          policy=numbers, law=Law("mark", "station", "mark"), of_policy="mark")


def main() -> None:
    folder, ap, wanted = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    maker, authority = Maker(), Authority(folder)
    maker.trusted(folder / "trusted")
    authority.issue(ap)
    numbers = policy.make("conformance", 1, policy.ENFORCE, wanted["policy"])
    service = Service(authority, certificate="push")
    if wanted["marks"]:
        service.want_others(ap, mark=maker.sign(bundles.encode(of_marks(maker, numbers))))
    else:
        service.want(ap, maker.sign(bundles.encode(of_windows(maker, wanted["noise_dbm"], numbers))))
    service.switch(ap, "on")
    print(service.port, flush=True)
    for line in sys.stdin:
        if line.strip() == "lost":
            service.stop()
            return
        service.switch(ap, line.strip())
    service.stop()


if __name__ == "__main__":
    main()
