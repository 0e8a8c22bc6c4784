"""The flow's two ends. usage: serve.py serve|fetch ADDRESS [SECONDS]. The server sends as long as it may, at a pace;
the client announces far more than what it is clamped to, and reads until its time is over.
"""
import socket
import sys
import threading
import time

PORT, SO_MAX_PACING_RATE, SO_RCVBUFFORCE = 443, 47, 33
BYTES_PER_S, BUFFER = 300_000, 1 << 21


def serve(address: str) -> None:
    here = socket.create_server((address, PORT))
    print("ready", flush=True)
    while True:
        threading.Thread(target=send, args=here.accept()[:1], daemon=True).start()


def send(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, BYTES_PER_S)
    with client:
        try:
            while True:
                client.sendall(bytes(16384))
        except OSError:
            return


def fetch(address: str, seconds: str) -> None:
    flow = socket.socket()
    flow.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    flow.settimeout(30)
    flow.connect((address, PORT))
    print("ready", flush=True)
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end and flow.recv(1 << 16):
        pass


if __name__ == "__main__":
    {"serve": serve, "fetch": fetch}[sys.argv[1]](*sys.argv[2:])
