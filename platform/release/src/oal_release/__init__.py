"""A release of OAL: one version, images with bills of materials, chart, sources, checksums, a signature."""


class ReleaseError(Exception):
    """What is wrong, and what to do about it."""
