"""Windows set from outside the controller, through `ap-exporter rwnd`: the two bounds of an evaluation. A fixed window
for every long flow, or what an oracle that knows the future says: a list of (time, bytes for each station)."""
import json
import subprocess
import threading
import time

from .connection import tcp_info

RENEW_S, TTL_MS = 0.1, 1000


class Clamp:
    """Renews the windows of an AP's downward flows, ten times a second, from begin() to end()."""

    def __init__(self, plan: dict, ap_ns: str | None, wlan: str, flows: list, log: str, host: str):
        words = [host + plan["exporter"], "rwnd", "--backend", "bpf", "--interface", wlan]
        self.spec, self.flows = plan["clamp"], [
            flow for flow in flows
            if flow.spec["direction"] == "down" and not flow.spec["udp"] and not flow.spec["size_kb"]
            and not flow.spec["burst_kb"]
        ]
        self.log = open(log, "w")
        self.process = subprocess.Popen(["ip", "netns", "exec", ap_ns, *words] if ap_ns else words,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.stopping, self.failure = threading.Event(), ""
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.sets = self.refused = 0

    def begin(self) -> None:
        self.start_s = time.monotonic()
        self.thread.start()

    def window(self, station: str, now_s: float) -> int:
        """Bytes that a long flow of this station may have under way now; 0: as it likes."""
        if "window_bytes" in self.spec:
            return self.spec["window_bytes"]
        step = min(int(now_s / self.spec["step_s"]), self.spec["steps"] - 1)
        return self.spec["stations"].get(station, [0] * self.spec["steps"])[step]

    def ask(self, line: str) -> dict:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"ap-exporter rwnd ended ({self.process.wait()}) at: {line}")
        return json.loads(answer)

    def renew(self, now_s: float) -> None:
        for flow in self.flows:
            for connection in [c for c in flow.connections if c.open]:
                bytes_ = self.window(flow.spec["station"], now_s)
                if not bytes_:
                    continue
                (server, server_port), (client, client_port) = connection.socket.getsockname(), flow.listener.address
                info = tcp_info(connection.socket)
                if not info["acked_bytes"]:
                    continue  # not through the handshake: the scale is not known yet
                answer = self.ask(
                    f"set {client}:{client_port} {server}:{server_port} {bytes_} {TTL_MS} {info['peer_scale']}"
                    f" {info['mss']}"
                )
                self.sets += 1
                if answer.get("error"):
                    self.refused += 1
                    self.log.write(f"{now_s:.1f} s: {answer}\n")

    def run(self) -> None:
        try:
            while not self.stopping.wait(RENEW_S):
                self.renew(time.monotonic() - self.start_s)
        except Exception as error:  # reported by end(): a thread's own exit is silent
            self.failure = repr(error)

    def end(self) -> int:
        """Stop; number of problems. The command's own account goes to the log."""
        self.stopping.set()
        self.thread.join()
        if not self.failure:
            try:
                self.log.write(f"{json.dumps(self.ask('stats'))}\n")
                self.ask("quit")
            except (RuntimeError, OSError, json.JSONDecodeError) as error:
                self.failure = repr(error)
        self.process.stdin.close()
        status = self.process.wait(timeout=20)
        self.log.write(f"sets {self.sets} refused {self.refused} {self.failure}\n")
        self.log.close()
        return (status != 0) + bool(self.failure) + bool(self.refused)
