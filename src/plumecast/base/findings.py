"""What a check found, as readers and stores report it."""

from __future__ import annotations

from dataclasses import dataclass

PASSED = "passed"
"""The recorded text of a fire without findings."""

_SEPARATOR = " | "


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem that a check found in a fire."""

    check: str
    message: str

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


def write_findings(findings: tuple[Finding, ...]) -> str:
    """The findings of a fire as one text, for a store."""
    return _SEPARATOR.join(map(str, findings)) or PASSED


def read_findings(text: str) -> tuple[Finding, ...]:
    """The findings that `write_findings` wrote."""
    if text == PASSED:
        return ()
    return tuple(
        Finding(check, message)
        for check, _, message in (part.partition(": ") for part in text.split(_SEPARATOR))
    )
