"""Expected failures of the command line."""


class CommandError(Exception):
    """Something outside the command line is wrong; the message is one line that says what and how to mend it (exit status 1)."""


class UsageError(CommandError):
    """The command line itself is wrong, in a way that only shows when its values are looked at together (exit status 2)."""
