"""Write a map as one HTML page that needs no network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from plumecast.app.maps.colours import Scale, encode_png, tick_text
from plumecast.app.maps.ground import outline, relief
from plumecast.app.maps.layers import Content, Layer, Scene
from plumecast.base.files import write_text
from plumecast.base.version import __version__

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


def write_html(content: Content, path: Path) -> None:
    """Write the page of a map."""
    write_text(path, render(content))


def render(content: Content) -> str:
    """The page as text; whatever comes from the data is escaped."""
    codes, sheets, grid = scripts(), styles(), content.grid
    cells = f"{grid.nx} × {grid.ny} cells of {grid.dx / 1e3:.3g} × {grid.dy / 1e3:.3g} km"
    return Template(asset("map/template.html")).substitute(
        title=html.escape(content.title),
        source=html.escape(f"{cells}; grid lines in km, made by plumecast {__version__}"),
        version=__version__,
        scene_word=content.scene_word,
        notes="".join(f"<p>{html.escape(note)}</p>" for note in content.notes),
        script_hashes=" ".join(fingerprint(code) for _, code in codes),
        style_hashes=" ".join(fingerprint(sheet) for sheet in sheets),
        scripts="\n".join(f'<script type="{kind}">{code}</script>' for kind, code in codes),
        styles="\n".join(f"<style>{sheet}</style>" for sheet in sheets),
        data=in_script(page_data(content)),
    )


def in_script(content: Any) -> str:
    """JSON that no text can end the script element of."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def page_data(content: Content) -> dict[str, Any]:
    """What the viewer shows, for JSON."""
    grid, places = content.grid, content.places
    listed = (
        ()
        if places is None
        else zip(places.names, places.rows, places.columns, places.positions(grid), strict=True)
    )
    picture = None
    if content.heights is not None:
        png = encode_png(relief(*content.heights))
        picture = f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
    return {
        "title": content.title,
        "grid": {name: getattr(grid, name) for name in ("left", "bottom", "dx", "dy", "nx", "ny")},
        "layers": [
            {name: getattr(layer, name) for name in Layer.__slots__} for layer in content.layers
        ],
        "scales": {key: scale_data(scale) for key, scale in content.scales.items()},
        "scenes": [_scene_data(scene, content) for scene in content.scenes],
        "places": [
            {"name": name, "row": int(row), "column": int(column),
             "x": float(x), "y": float(y)}
            for name, row, column, (x, y) in listed
        ],
        "borders": {
            kind: [np.rint(line).astype(int).ravel().tolist() for line in lines]
            for kind, lines in content.borders.items()
        },
        "relief": picture,
    }  # fmt: skip


def scale_data(scale: Scale) -> dict[str, Any]:
    """Colours and values of the levels of a scale, and the numbers of its legend."""
    values = [None if np.isnan(value) else float(f"{value:.5g}") for value in scale.values]
    ticks = [{"position": scale.position(tick), "text": tick_text(tick)} for tick in scale.ticks()]
    return {
        "kind": scale.kind,
        "low": scale.low,
        "high": scale.high,
        "resolution": scale.resolution,
        "values": values,
        "colours": scale.rgba.tolist(),
        "ticks": ticks,
    }


def _scene_data(scene: Scene, content: Content) -> dict[str, Any]:
    fields = {
        layer.name: pack(content.scales[layer.scale].levels(scene.fields[layer.name]))
        for layer in content.layers
    }
    rings = None
    if scene.burned is not None:
        rings = [[np.ravel(ring).tolist() for ring in outline(burned)] for burned in scene.burned]
    hours = None if scene.hours is None else [float(hour) for hour in scene.hours]
    return {"name": scene.name, "hours": hours, "fields": fields, "perimeters": rings}


def pack(levels: np.ndarray) -> str:
    """Bytes as base64 of deflate."""
    packed = zlib.compress(np.ascontiguousarray(levels).tobytes(), 9)
    return base64.b64encode(packed).decode("ascii")


def asset(path: str) -> str:
    """The text of a file below `assets`."""
    return files("plumecast.app").joinpath("assets", path).read_text(encoding="utf-8")


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
