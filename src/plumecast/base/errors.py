"""The error and the warning that users see. A message has the values and says what to do."""


class PlumecastError(ValueError):
    """Bad input or a request that cannot be met. The message names the value and the next step."""


class PlumecastWarning(UserWarning):
    """A doubtful input or result; commands print the message as one line on standard error."""
