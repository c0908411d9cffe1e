"""Write a map as KMZ for GIS programs: overlays with times, the perimeter, and a legend."""

from __future__ import annotations

import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from plumecast.app.maps.colours import NOTHING, encode_png
from plumecast.app.maps.figure import legend_png
from plumecast.app.maps.ground import perimeters
from plumecast.app.maps.layers import Content, Layer, Scene
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.files import atomic_write
from plumecast.data.crs import as_crs, import_extra
from plumecast.paper.figures import hours_text

NOMINAL = "2000-01-01T00:00Z"
"""Time of ignition of fires without a date; viewers of KML need dates for their time slider."""

FINER = 4  # pixels per cell along each side, so that turned cells keep their shape
_KML = "http://www.opengis.net/kml/2.2"
_PERIMETER = "ff1f30d7"  # opacity, blue, green, red


def write_kmz(content: Content, path: Path, ignition_time: str | None = None) -> None:
    """Write the first scene: a folder for every layer, an overlay for every time."""
    if content.crs is None:
        raise PlumecastError(
            f"{path}: the grid has no projection, so that its place on Earth is unknown; write "
            ".html or .png, or read the fires again with a coordinate system"
        )
    scene, warp = content.scenes[0], Warp(content, path)
    ignition_time = ignition_time or scene.ignition_time
    start = _start(ignition_time)
    root = ElementTree.Element("kml", xmlns=_KML)
    document = ElementTree.SubElement(root, "Document")
    _text(document, "name", f"{content.title} {scene.name}".strip())
    dated = "" if ignition_time else f" Dates are nominal: ignition at {NOMINAL}."
    _text(document, "description", f"Made by plumecast.{dated if scene.hours is not None else ''}")
    pictures: dict[str, bytes] = {}
    for number, layer in enumerate(content.layers):
        folder = ElementTree.SubElement(document, "Folder")
        _text(folder, "name", layer.title)
        _text(folder, "visibility", int(number == 0))
        _legend(folder, content, layer, number, pictures)
        for time in range(scene.fields[layer.name].shape[0]):
            levels = content.scales[layer.scale].levels(scene.fields[layer.name][time])
            name = f"layer{number}_{time:03d}.png"
            pictures[name] = encode_png(content.scales[layer.scale].rgba[warp.levels(levels)])
            _overlay(folder, scene, layer, time, name=name, warp=warp, start=start)
    _perimeters(document, scene, content, warp, start)
    with atomic_write(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as file:
        text = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
        for name, data in {"doc.kml": text, **pictures}.items():
            file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


class Warp:
    """From the plane of a grid to longitude and latitude."""

    def __init__(self, content: Content, path: Path) -> None:
        grid = content.grid
        right, top = grid.left + grid.nx * grid.dx, grid.bottom + grid.ny * grid.dy
        pyproj = import_extra("pyproj", path)
        self.move = pyproj.Transformer.from_crs(as_crs(content.crs, path), 4326, always_xy=True)
        edges = self.move.transform_bounds(grid.left, grid.bottom, right, top)
        box = dict(zip(("west", "south", "east", "north"), edges, strict=True))
        across = (np.arange(FINER * grid.nx) + 0.5) / (FINER * grid.nx)
        down = (np.arange(FINER * grid.ny) + 0.5) / (FINER * grid.ny)
        longitude = box["west"] + across * (box["east"] - box["west"])
        latitude = box["north"] - down * (box["north"] - box["south"])
        x, y = self.move.transform(*np.meshgrid(longitude, latitude), direction="INVERSE")
        columns = np.floor((x - grid.left) / grid.dx)
        rows = np.floor((y - grid.bottom) / grid.dy)
        inside = (columns >= 0) & (columns < grid.nx) & (rows >= 0) & (rows < grid.ny)
        self.box = box
        # Flat number of the cell below every pixel of the picture, north row first; −1 outside.
        self.cells = np.where(inside, rows * grid.nx + columns, -1).astype(np.int64)

    def levels(self, levels: np.ndarray) -> np.ndarray:
        """Levels (ny, nx), south row first, as a picture in degrees, north row first."""
        return np.where(self.cells >= 0, levels.ravel()[self.cells], NOTHING).astype(np.uint8)

    def degrees(self, ring: np.ndarray) -> str:
        """A ring (n, 2) in the plane as KML coordinates."""
        places = zip(*self.move.transform(*ring.T), strict=True)
        return " ".join(f"{longitude:.6f},{latitude:.6f}" for longitude, latitude in places)


def _start(text: str | None) -> datetime:
    try:
        start = datetime.fromisoformat(text or NOMINAL)
    except ValueError:
        raise ArgumentError(
            "ignition_time", text, "write it as 2026-08-01T18:00Z", problem="is not a time"
        ) from None
    return start.replace(tzinfo=UTC) if start.tzinfo is None else start.astimezone(UTC)


def _text(parent: Any, tag: str, value: object) -> None:
    """An element with text; characters that XML does not allow become blanks."""
    shown = "".join(letter if letter.isprintable() else " " for letter in str(value))
    ElementTree.SubElement(parent, tag).text = shown


def _time_span(parent: Any, scene: Scene, time: int, start: datetime) -> None:
    """From this time to the next; the last lasts as long as the one before it."""
    if scene.hours is None:
        return
    hours = scene.hours.astype(float)
    gap = hours[-1] - hours[-2] if hours.size > 1 else 1.0
    end = hours[time + 1] if time + 1 < hours.size else hours[-1] + gap
    span = ElementTree.SubElement(parent, "TimeSpan")
    for tag, hour in (("begin", hours[time]), ("end", end)):
        moment = start + timedelta(hours=float(hour))
        _text(span, tag, moment.strftime("%Y-%m-%dT%H:%M:%SZ"))


def _overlay(
    folder: Any, scene: Scene, layer: Layer, time: int, *, name: str, warp: Warp, start: datetime
) -> None:
    overlay = ElementTree.SubElement(folder, "GroundOverlay")
    when = "" if scene.hours is None else f", {hours_text(scene.hours[time])} since ignition"
    _text(overlay, "name", f"{layer.title}{when}")
    _time_span(overlay, scene, time, start)
    _text(ElementTree.SubElement(overlay, "Icon"), "href", name)
    box = ElementTree.SubElement(overlay, "LatLonBox")
    for edge, value in warp.box.items():
        _text(box, edge, f"{value:.7f}")


def _legend(
    folder: Any, content: Content, layer: Layer, number: int, pictures: dict[str, bytes]
) -> None:
    """A legend that stays in the lower left corner of the screen."""
    name = f"legend{number}.png"
    pictures[name] = legend_png(content, layer)
    overlay = ElementTree.SubElement(folder, "ScreenOverlay")
    _text(overlay, "name", f"Legend: {layer.title}")
    _text(ElementTree.SubElement(overlay, "Icon"), "href", name)
    for tag, place in (("overlayXY", ("0", "0")), ("screenXY", ("0.02", "0.06"))):
        ElementTree.SubElement(
            overlay, tag, x=place[0], y=place[1], xunits="fraction", yunits="fraction"
        )


def _perimeters(document: Any, scene: Scene, content: Content, warp: Warp, start: datetime) -> None:
    if scene.burned is None:
        return
    folder = ElementTree.SubElement(document, "Folder")
    _text(folder, "name", "Fire perimeter")
    for time, burned in enumerate(scene.burned):
        rings = perimeters(burned, content.grid)
        if not rings:
            continue
        mark = ElementTree.SubElement(folder, "Placemark")
        _text(mark, "name", "Fire perimeter")
        _time_span(mark, scene, time, start)
        line = ElementTree.SubElement(ElementTree.SubElement(mark, "Style"), "LineStyle")
        _text(line, "color", _PERIMETER)
        _text(line, "width", 2)
        shapes = ElementTree.SubElement(mark, "MultiGeometry")
        for ring in rings:
            _text(ElementTree.SubElement(shapes, "LineString"), "coordinates", warp.degrees(ring))
