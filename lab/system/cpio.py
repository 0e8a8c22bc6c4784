"""An initial file system as the kernel unpacks it: the "newc" format of cpio, written without the program."""
import gzip
import pathlib
import stat


def _entry(name: str, mode: int, body: bytes, inode: int) -> bytes:
    fields = [inode, mode, 0, 0, 1, 0, len(body), 0, 0, 0, 0, len(name) + 1, 0]
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
    return _padded(head) + _padded(body)


def _padded(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % 4)


def archive(files: dict[str, pathlib.Path | str | None]) -> bytes:
    """A gzipped archive of root's files. A path is copied with its mode, text becomes a file of that text (a script is
    executable), text that begins with "->" a link to what follows, None a folder; folders above are made."""
    entries: dict[str, tuple[int, bytes]] = {}
    for name, what in files.items():
        path = pathlib.PurePosixPath(name.lstrip("/"))
        for above in reversed(path.parents[:-1]):
            entries.setdefault(str(above), (stat.S_IFDIR | 0o755, b""))
        if what is None:
            entries[str(path)] = (stat.S_IFDIR | 0o755, b"")
        elif isinstance(what, str) and what.startswith("->"):
            entries[str(path)] = (stat.S_IFLNK | 0o777, what[2:].encode())
        elif isinstance(what, str):
            entries[str(path)] = (stat.S_IFREG | (0o755 if what.startswith("#!") else 0o644), what.encode())
        else:
            entries[str(path)] = (stat.S_IFREG | (what.stat().st_mode & 0o777), what.read_bytes())
    packed = b"".join(_entry(name, mode, body, i + 1) for i, (name, (mode, body)) in enumerate(entries.items()))
    return gzip.compress(packed + _entry("TRAILER!!!", 0, b"", 0), mtime=0)
