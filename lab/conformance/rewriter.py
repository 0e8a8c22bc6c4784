"""`ap-exporter rwnd` under the suite's hand: commands go in on its standard input, one JSON line comes back for each;
every command is an event with its time.
"""
import json
import subprocess
import time

from guest.exporter import section
from guest.sh import write


def now_us() -> int:
    return time.time_ns() // 1000


def end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


class Refused(Exception):
    """The rewrite said no; the answer."""


class Rewriter:
    def __init__(self, binary: str, options: dict, events: list[dict], folder: str, case: str):
        self.events, config = events, "/run/lab/rwnd.uci"
        write(
            config,
            section("exporter", {"ap_id": "conformance", "status_socket": ""})
            + section("rwnd", {"mode": "enforce", **options})
            # as an AP's: what it collects, where that goes
            + section("packet", {"interface": "lan0"}) + section("file", {"path": "/run/lab/unused.oalcap"}))
        self.log = open(f"{folder}/{case}.rwnd.log", "wb")
        self.process = subprocess.Popen([binary, "rwnd", "-c", config], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, bufsize=1)
        self.answer("the start")

    def ask(self, line: str) -> dict:
        self.process.stdin.write(line + "\n")
        return self.answer(line)

    def answer(self, to: str) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise Refused(
                f"ap-exporter rwnd ended with {self.process.wait(timeout=20)} on {to!r}:"
                f" {open(self.log.name).read()[-500:]}"
            )
        return json.loads(line)

    def command(self, what: str, flow, *words: int, ok: bool | None = True, down: bool = False, **more) -> dict:
        """Send it and note when; `ok`: what its answer must be (None: either). `down`: of the server's ACKs; its event
        names the flow as the server does.
        """
        (client, server), (client_port, server_port) = flow.address, flow.ports
        begin = now_us()
        answer = self.ask(" ".join([what, end(client, client_port), end(server, server_port), *map(str, words),
                                    *(["down"] if down else [])]))
        self.events.append({
            "what": what, "flow": list(flow.ports[::-1] if down else flow.ports), "t_us": begin, "end_us": now_us(),
            "ok": answer.get("ok", False), "answer": answer, **more
        })
        if ok is not None and answer.get("ok", False) != ok:
            raise Refused(f"{what} of {flow.ports} {words}: {answer}")
        return answer

    def set(self, flow, limit_bytes: int, ttl_ms: int, scale: int | None = None, mss: int | None = None,
            ok: bool | None = True, down: bool = False) -> dict:
        words = [limit_bytes, ttl_ms] + ([scale, mss] if scale is not None else [])
        return self.command("set", flow, *words, ok=ok, down=down, bytes=limit_bytes, ttl_ms=ttl_ms,
                            scale=scale)

    def release(self, flow, down: bool = False) -> dict:
        return self.command("release", flow, down=down)

    def stats(self) -> dict:
        return self.ask("stats")["stats"]

    def kill(self) -> None:
        """SIGKILL: nothing is cleaned up."""
        begin = now_us()
        self.process.kill()
        self.process.wait()
        self.events.append({"what": "killed", "t_us": begin, "end_us": now_us()})

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(timeout=20)
        self.log.close()
