"""A switch chip behind a DSA port, by hand: frames of the CPU's port carry MediaTek's tag, those of the wire none.

usage: chip.py CPU WIRE NUMBER. Between the interface CPU, where the router's eth0 ends, and WIRE, the switch's port
NUMBER. The tag is four bytes behind the addresses: on the way out byte 1 has a bit for each port that the frame is for;
on the way in it has the number of the port that it came from (Linux' net/dsa/tag_mtk.c).
"""
import select
import socket
import sys

ADDRESSES, TAG = 12, 4
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23


def port(interface: str) -> socket.socket:
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    found.bind((interface, 0))
    found.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    return found


def main() -> None:
    cpu, wire, number = port(sys.argv[1]), port(sys.argv[2]), int(sys.argv[3])
    from_here = bytes((0, number, 0, 0))
    print("ready", flush=True)
    while True:
        for ready in select.select([cpu, wire], [], [])[0]:
            frame = ready.recv(1 << 16)
            if ready is wire:
                cpu.send(frame[:ADDRESSES] + from_here + frame[ADDRESSES:])
            elif frame[ADDRESSES + 1] >> number & 1:
                wire.send(frame[:ADDRESSES] + frame[ADDRESSES + TAG:])


if __name__ == "__main__":
    main()
