"""What goes wrong in a way that a person can mend."""


class TrainingError(Exception):
    """The message says what is wrong and what to do; the command line prints it without a traceback and ends with
    status 1.
    """
