#!/usr/bin/env python3
"""TLS in front of plain ports of this machine: what the stand-in of ClickHouse, which listens for HTTP and TCP alone,
lacks.

usage: python tls_front.py CERTIFICATE KEY HOST PORT=PLAIN_PORT…      until standard input ends
"""
import asyncio
import os
import ssl
import sys
import threading


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Everything from one side to the other, until one of them ends."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


def forward(port: int):
    async def connected(reader, writer):
        try:
            inner = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, inner[1]), pump(inner[0], writer))

    return connected


async def serve(certificate: str, key: str, host: str, ports: list[str]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    for port in ports:
        outer, _, inner = port.partition("=")
        await asyncio.start_server(forward(int(inner)), host, int(outer), ssl=context)
    await asyncio.Event().wait()


def end_with_the_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with_the_parent, daemon=True).start()
    asyncio.run(serve(*sys.argv[1:4], sys.argv[4:]))
