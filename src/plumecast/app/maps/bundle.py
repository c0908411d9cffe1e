"""Put scripts and styles of the package into one page, with a policy that allows only them."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

SCRIPTS = ("vendor/leaflet/leaflet.js", "vendor/uplot/uPlot.iife.min.js")
MODULES = (
    "data", "field_layer", "legend", "time_slider", "chart", "ground", "picture", "viewer", "main",
)  # fmt: skip
"""The modules of `assets/map`, each after those that it imports."""

STYLES = ("vendor/leaflet/leaflet.css", "vendor/uplot/uPlot.min.css", "map/map.css")

_IMPORT = re.compile(r"^import\s[^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=\w)", re.MULTILINE)
_MAP = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)
_PICTURES = re.compile(r"url\(images/[^)]*\)")


def asset(path: str) -> str:
    """The text of a file below `assets`."""
    found = files("plumecast.app").joinpath("assets", *path.split("/"))
    return found.read_text(encoding="utf-8")


def scripts() -> list[tuple[str, str]]:
    """Type and text of the scripts of a page: the libraries, and our modules as one."""
    libraries = [("text/javascript", _MAP.sub("", asset(path))) for path in SCRIPTS]
    parts = [_EXPORT.sub("", _IMPORT.sub("", asset(f"map/{name}.js"))) for name in MODULES]
    return [*libraries, ("module", "\n".join(parts))]


def styles() -> list[str]:
    """Texts of the style sheets, without the pictures of Leaflet's controls that we do not use."""
    return [_PICTURES.sub("none", asset(path)) for path in STYLES]


def fingerprint(text: str) -> str:
    """A source of a content security policy that allows exactly this inline text."""
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
