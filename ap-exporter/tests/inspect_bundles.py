#!/usr/bin/env python3
"""The commands `bundle` and `predict` on the contract's golden bundles, from outside."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM = "build/ap-exporter"
GOLDEN = pathlib.Path("../schema/golden")
NUMBERS = pathlib.Path("../policies/rwnd-fair/numbers.yaml")
MAY = "role=%s scope=fleet max_mode=enforce\n"
failed = passed = 0


def check(name: str, ok: bool, detail: object = "") -> None:
    global failed, passed
    passed, failed = passed + ok, failed + (not ok)
    print(f"{'ok' if ok else 'not ok'} {name}" + ("" if ok else f"\n# {detail}"), flush=True)


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *arguments], input=text, capture_output=True, text=True, timeout=60)


def records(name: str) -> dict[str, tuple[list[str], bytes]]:
    data, at, out = (GOLDEN / f"{name}.bin").read_bytes(), 0, {}
    for line in (GOLDEN / f"{name}.txt").read_text().splitlines():
        size = int.from_bytes(data[at + 1:at + 5], "little")
        out[line.split()[0]] = line.split(), data[at + 5:at + 5 + size]
        at += 5 + size
    return out


def main() -> None:
    golden, golden2 = records("bundles"), records("bundles2")
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "bundle"
        registry, trainer = pathlib.Path(folder) / "registry", pathlib.Path(folder) / "trainer"
        for path in (registry, trainer):  # what a key may sign is in keys.txt; here it may sign what there is
            lines = (GOLDEN / "bundles.keys").read_text().splitlines()
            path.write_text("".join(f"{line} {MAY % path.name}" for line in lines if line.startswith("ed25519")))
        wrong = []
        for name, (words, signed) in [*golden.items(), *golden2.items()]:
            if words[1] != "-":
                continue  # there is no bundle in force on a command line
            file.write_bytes(signed)
            source = json.loads(run("bundle", str(file)).stdout).get("source")
            keys = trainer if source == "online" else registry
            done = run("bundle", str(file), "--keys", str(keys), "--ap", "ap-1", "--site", "lab")
            said = json.loads(done.stdout)
            want = {"accepted": words[2] == "ok"} | (
                {"hash": words[3], "serial": int(words[4])} if words[2] == "ok" else {"reason": words[2]}
            )
            if done.returncode != (words[2] != "ok") or {k: said.get(k) for k in want} != want:
                wrong.append((name, said))
        check("bundle says of every golden bundle what the contract says", not wrong, wrong[:3])
        wrong = []
        for name, (words, signed) in records("keys").items():
            file.write_bytes(signed)
            keys = "--keys", str(GOLDEN / "keys.trusted")
            for place, want in ((("--ap", "ap-1", "--site", "lab"), words[1]), ((), words[2])):
                said = json.loads(run("bundle", str(file), *keys, *place).stdout)
                if said.get("reason", "ok") != want:
                    wrong.append((name, place, said))
        check("bundle says whether its key may sign it", not wrong, wrong[:3])

        file.write_bytes(golden["ok_window"][1])
        said = json.loads(run("bundle", str(file)).stdout)
        check(
            "without keys it says that the signature was not checked",
            said["accepted"] and not said["signature_checked"],
            said,
        )
        check("a bundle of format 1 reads as the law of rwnd-fair", said["of_policy"] == "rwnd-fair"
              and said["law"] == {"name": "fair_window", "subject": "flow", "action": "rwnd", "values": []}
              and said["models"] == {"class": "tree", "window": "sum"}, said)
        file.write_bytes(golden2["ok_direct_four_models"][1])
        said = json.loads(run("bundle", str(file)).stdout)
        check(
            "bundle shows the policy that a bundle belongs to, its law and its models",
            said["of_policy"] == "example"
            and said["law"] == {"name": "direct", "subject": "flow", "action": "rwnd", "values": [0, 0, 60000, 30000]}
            and said["models"] == {"class": "tree", "window": "sum", "sixteen-letters-": "tree", "again": "sum"},
            said,
        )
        file.write_bytes(golden["ok_policy_weights"][1])
        said = json.loads(run("bundle", str(file)).stdout)
        policy = said.get("policy", {})
        check(
            "bundle shows the policy: mode, name, version, every number, weights",
            said["mode"] == "enforce"
            and (policy.get("name"), policy.get("version")) == ("a site enforces", 3)
            and sorted(policy["control"]) == sorted(re.findall(r"- {name: (\w+),", NUMBERS.read_text()))
            and policy["control"]["alpha"] == 0
            and policy["control"]["ttl_us"] == 600000
            and policy["weights"] == {"1": 1000, "80": 10, "443": 4000, "65535": 100000},
            said,
        )
        file.write_bytes(golden["bad_policy_ttl_us_high"][1])
        said = json.loads(run("bundle", str(file)).stdout)
        check(
            "of a refused policy it says field, value and bounds",
            (said["reason"], said["detail"]) == ("bad_policy", "ttl_us 1000001; 100000 to 1000000"),
            said,
        )
        file.write_bytes(golden["ok_policy_none"][1])
        said = json.loads(run("bundle", str(file)).stdout)
        check(
            "without a policy the mode is off, and none is shown", said["mode"] == "off" and "policy" not in said, said
        )
        file.write_bytes(golden["ok_window"][1])
        lines = run(
            "predict",
            str(file),
            text="a heading\n" + ",".join(["-"] * 48) + "\n" + ",".join(str(i) for i in range(48)) + "\n",
        )
        rows = [[int(v) for v in line.split(",")] for line in lines.stdout.splitlines()]
        check(
            "predict answers each row with leaf, class, permille and bytes",
            lines.returncode == 0
            and len(rows) == 2
            and all(len(r) == 4 and 0 <= r[1] < 4 and 0 <= r[2] <= 1000 and 1460 <= r[3] <= 1 << 20 for r in rows),
            lines,
        )
        for name, text in (
            ("too few values", "1,2"),
            ("a word", "1," + ",".join(["x"] * 47)),
            ("more than 64 bits", ",".join(["9" * 30] * 48)),
            ("a fraction", ",".join(["1.5"] * 48)),
        ):
            done = run("predict", str(file), text=text)
            check(
                f"predict refuses {name} and names the line",
                done.returncode == 1 and "line 1" in done.stderr and not done.stdout,
                done,
            )
        file.write_bytes(golden["bad_tree_cycle"][1])
        done = run("predict", str(file))
        check("predict refuses a bundle with a cycle", done.returncode == 1 and "bad_tree" in done.stderr, done)
        for arguments in (("bundle", f"{folder}/nothing"), ("bundle", str(file), "--keys", f"{folder}/nothing")):
            done = run(*arguments)
            check("a file that cannot be read is named", done.returncode == 2 and "nothing" in done.stderr, done)


main()
print(f"# {passed} passed, {failed} failed")
sys.exit(failed > 0)
