"""What an access point that enforces has on flash. usage: bundle.py FOLDER AP. A bundle whose policy lowers every flow
of a known scale, at every instant, to what the law `direct` has for class 3; keys that trust it; a certificate. Runs
under the Python of schema/requirements.txt.
"""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ap-exporter/tests"))
from push_service import Authority, Maker, policies  # noqa: E402

POLICY, CLASS = "clamp-all", 3


def main() -> None:
    folder, ap = Path(sys.argv[1]), sys.argv[2]
    maker, authority = Maker(), Authority(folder)
    authority.issue(ap)
    maker.trusted(folder / "trusted")
    (folder / "state").mkdir()
    policy = policies.make(POLICY, 1, policies.ENFORCE)
    (folder / "state" / f"{ap}@{POLICY}.bundle").write_bytes(
        maker.good(of_policy=POLICY, policy=policy, classes=(CLASS, CLASS)))


if __name__ == "__main__":
    main()
