"""A process that gives up the file system but for what it names (Landlock, which needs no privilege and cannot be
undone).

For ClickHouse: clickhouse-local lets everybody who may ask anything read every file of its owner, `SELECT
file('/etc/passwd')`, even the user without a password; no grant and no setting forbids it (a server checks the path,
clickhouse-local does not).
"""
import ctypes
import os
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same number on every architecture
VERSION_FLAG = 1
PATH_BENEATH = 1
PR_SET_NO_NEW_PRIVS = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE = 1 << 14  # since version 3
ALL = (1 << 14) - 1  # version 2: with moves between folders, which a database needs
READ = EXECUTE | READ_FILE | READ_DIR
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE


def version() -> int:
    """Of the kernel's Landlock; 0 where there is none."""
    return max(0, LIBC.syscall(CREATE_RULESET, None, 0, VERSION_FLAG))


def _call(what: str, *arguments) -> int:
    result = LIBC.syscall(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def to(readable, writable) -> None:
    """From here on this thread, and every one that it starts, opens nothing but these files and what is below these
    folders; missing ones are left out. What is open already stays open."""
    handled = ALL | (TRUNCATE if version() >= 3 else 0)
    ruleset = _call("making a Landlock ruleset", CREATE_RULESET, struct.pack("=Q", handled), 8, 0)
    try:
        for paths, access in ((readable, READ), (writable, handled)):
            for path in paths:
                try:
                    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
                except FileNotFoundError:
                    continue
                try:
                    allowed = access if os.path.isdir(path) else access & OF_A_FILE
                    _call(f"allowing {path}", ADD_RULE, ruleset, PATH_BENEATH,
                          struct.pack("=Qi", allowed & handled, handle), 0)
                finally:
                    os.close(handle)
        if LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "giving up new privileges")
        _call("restricting this process", RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
