"""Expected failures of the command line."""


class CommandError(Exception):
    """Something outside the command line is wrong; the message is one line that says what and how to mend it (exit status 1)."""
