"""The one exception that is meant for people: it says what was attempted and what to do."""


class PlatformError(Exception):
    pass
