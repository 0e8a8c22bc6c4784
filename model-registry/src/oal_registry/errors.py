"""What is meant for people: says what was attempted and what to do about it."""


class RegistryError(Exception):
    pass


class NotPackagable(RegistryError):
    """A version that cannot become a bundle. The message is what its tag `oal.error` says."""
