"""Another main program of the guest: plays made-up histories through a congestion control as its kernel has it
(`check`: a file of /proc; ca_check.c of policies/loss-cause and learned-ecn), and leaves what that says in
NAME.histories.txt.
"""
import json
import subprocess
import sys


def main() -> int:
    with open(sys.argv[1]) as f:
        plan = json.load(f)
    with open(f"/run/out/{plan['name']}.histories.txt", "w") as out:
        return subprocess.run(["/run/host" + plan["program"], "kernel", plan["check"], str(plan["histories"])],
                              stdout=out, stderr=subprocess.STDOUT).returncode


if __name__ == "__main__":
    sys.exit(main())
