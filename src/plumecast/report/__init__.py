"""Self-contained HTML pages: of the studies, and for a planner. Here is what the two share."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumecast.base.errors import require

if TYPE_CHECKING:
    import jinja2
    from matplotlib.figure import Figure
else:
    jinja2 = require("jinja2", "report", "a report")


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure to embed."""

    source: str  # data URI
    caption: str
    alternative: str
    narrow: bool = False


def new_environment() -> jinja2.Environment:
    """The templates of this folder; every text is escaped, and an unknown name is an error."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("plumecast.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def embed(kind: str, content: bytes) -> str:
    """A data URI of an image."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def embed_figure(figure: Figure, dpi: int) -> str:
    """A data URI of a figure as PNG."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=dpi)
    return embed("png", content.getvalue())
