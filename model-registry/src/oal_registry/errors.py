"""What is meant for people: says what was attempted and what to do about it."""


class RegistryError(Exception):
    """What a person can mend; the command line prints it without a traceback and ends with status 1."""


class NotPackagable(RegistryError):
    """A version that cannot become a bundle. The message is what its tag `oal.error` says."""
