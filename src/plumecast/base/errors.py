"""The one error a user sees: what is wrong, with which values, and the next step."""


class PlumecastError(ValueError):
    """Bad input or a request that cannot be met; the message names the value and the next step."""
