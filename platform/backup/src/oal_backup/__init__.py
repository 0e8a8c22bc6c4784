"""Backup and restore of what OAL keeps. Python 3.11 and its standard library; pg_dump and pg_restore where PostgreSQL
is used.
"""


class BackupError(Exception):
    """Says what was attempted and what to do."""
