"""Write a map as KMZ for GIS programs: overlays with times, perimeter, places, and a legend."""

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
from plumecast.app.maps.layers import Content, Scene
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.files import atomic_write
from plumecast.data.crs import as_crs, import_extra
from plumecast.paper.figures import hours_text
from plumecast.sources.places import Places

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
    document = _add(root, "Document", name=f"{content.title} {scene.name}".strip())
    nominal = not ignition_time and scene.hours is not None
    dated = f" Dates are nominal: ignition at {NOMINAL}." if nominal else ""
    _text(document, "description", f"Made by plumecast.{dated}")
    pictures: dict[str, bytes] = {}
    for number, layer in enumerate(content.layers):
        folder = _add(document, "Folder", name=layer.title, visibility=int(number == 0))
        legend, scale = f"legend{number}.png", content.scales[layer.scale]
        pictures[legend] = legend_png(content, layer)
        overlay = _add(folder, "ScreenOverlay", name=f"Legend: {layer.title}")
        _add(overlay, "Icon", href=legend)
        for tag, x, y in (("overlayXY", "0", "0"), ("screenXY", "0.02", "0.06")):  # lower left
            ElementTree.SubElement(overlay, tag, x=x, y=y, xunits="fraction", yunits="fraction")
        for time, field in enumerate(scene.fields[layer.name]):
            picture = f"layer{number}_{time:03d}.png"
            pictures[picture] = encode_png(scale.rgba[warp.levels(scale.levels(field))])
            when = (
                "" if scene.hours is None else f", {hours_text(scene.hours[time])} since ignition"
            )
            overlay = _add(folder, "GroundOverlay", name=f"{layer.title}{when}")
            _time_span(overlay, scene, time, start)
            _add(overlay, "Icon", href=picture)
            _add(overlay, "LatLonBox", **{edge: f"{value:.7f}" for edge, value in warp.box.items()})
    if scene.burned is not None:
        _perimeters(document, scene, scene.burned, warp, start)
    if content.places is not None:
        _places(document, content.places, warp)
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
        self.grid, self.box = grid, box
        # Flat number of the cell below every pixel of the picture, north row first; −1 outside.
        self.cells = np.where(inside, rows * grid.nx + columns, -1).astype(np.int64)

    def levels(self, levels: np.ndarray) -> np.ndarray:
        """Levels (ny, nx), south row first, as a picture in degrees, north row first."""
        return np.where(self.cells >= 0, levels.ravel()[self.cells], NOTHING).astype(np.uint8)

    def degrees(self, ring: np.ndarray) -> str:
        """A ring (n, 2) in the plane as KML coordinates."""
        places = zip(*self.move.transform(*ring.T), strict=True)
        return " ".join(f"{longitude:.6f},{latitude:.6f}" for longitude, latitude in places)


def _places(document: Any, places: Places, warp: Warp) -> None:
    folder = _add(document, "Folder", name="Places")
    for name, position in zip(places.names, places.positions(warp.grid), strict=True):
        mark = _add(folder, "Placemark", name=name)
        _add(mark, "Point", coordinates=warp.degrees(position[np.newaxis]))


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


def _add(parent: Any, tag: str, **texts: object) -> Any:
    """An element with elements of text in it."""
    element = ElementTree.SubElement(parent, tag)
    for name, value in texts.items():
        _text(element, name, value)
    return element


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


def _perimeters(
    document: Any, scene: Scene, burned: np.ndarray, warp: Warp, start: datetime
) -> None:
    folder = _add(document, "Folder", name="Fire perimeter")
    for time, cells in enumerate(burned):
        rings = perimeters(cells, warp.grid)
        if rings:
            mark = _add(folder, "Placemark", name="Fire perimeter")
            _time_span(mark, scene, time, start)
            _add(_add(mark, "Style"), "LineStyle", color=_PERIMETER, width=2)
            shapes = _add(mark, "MultiGeometry")
            for ring in rings:
                _add(shapes, "LineString", coordinates=warp.degrees(ring))
