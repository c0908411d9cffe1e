"""The error that users see. Its message says what is wrong, with which values, and what to do."""


class PlumecastError(ValueError):
    """Bad input or a request that cannot be met. The message names the value and the next step."""
