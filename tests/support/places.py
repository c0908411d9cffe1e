"""Where the repository and the shared data lie."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY.parent / "shared" / "data"


def shared_data(relative: str) -> Path:
    """A path below the data shared between repositories; skips the test where it is absent."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"the shared data is not here: {path}")
    return path
