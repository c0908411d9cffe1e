"""Rows of a table that are kept on disk as soon as they are computed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from plumecast.base.files import write_json
from plumecast.base.version import __version__
from plumecast.studies.context import Context


def kept_row(context: Context, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The row that `make` computes, or the one that an earlier run with the same data kept.

    Rows are kept in the folder of the context; without one they are always computed.
    """
    if context.folder is None:
        context.tell(key)
        return make()
    where = context.folder / "rows" / f"{'-'.join(key.split())}.json"
    limits = {name: getattr(context.limits, name) for name in ("weather_tested", "scored")}
    content = [__version__, context.fingerprint, key, limits, context.captured]
    mark = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]
    try:
        record = json.loads(where.read_text(encoding="utf-8"))
        if record["fingerprint"] == mark:
            return dict(record["row"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not kept, or damaged: compute it again
    context.tell(key)
    row = make()
    where.parent.mkdir(parents=True, exist_ok=True)
    write_json(where, {"fingerprint": mark, "row": row})
    return row
