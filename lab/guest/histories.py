"""Another main program of the guest: plays made-up histories through oal_lc as its kernel has it
(policies/loss-cause/ca_check.c), and leaves what that says in NAME.histories.txt.
"""
import json
import subprocess
import sys


def main() -> int:
    with open(sys.argv[1]) as f:
        plan = json.load(f)
    with open(f"/run/out/{plan['name']}.histories.txt", "w") as out:
        return subprocess.run(["/run/host" + plan["program"], "kernel", "/proc/oal_lc_check", str(plan["histories"])],
                              stdout=out, stderr=subprocess.STDOUT).returncode


if __name__ == "__main__":
    sys.exit(main())
