"""Inputs that can be read and say something else: units, columns, fill values, copies, clocks.

A change that says the same in another way (mph for m/s with the numbers converted, another order of
columns, another unit of a raster) must give the same answer or be refused. A change that makes an
input wrong (a fill value, shifted columns, a town in another unit) must be refused or named in a
warning. What is answered differently without a word is the failure looked for.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tools.fuzz.commands import is_one_line, run_command
from tools.fuzz.trials import CHANGED, FOUND, REFUSED, TRACEBACK, UNCHANGED, Target

_SHAPE, _CELL = (16, 18), 3000.0  # the surrogate's grid
_RASTER = 1000.0  # cell of the arrival times, m
_FILLS = (-9999.0, 9.96921e36, 1e20, 720.0, 9999.0, -999.0)
_TOLERANCE = 2e-4
"""Of the largest value: converted numbers are written with six digits."""


@dataclass
class Inputs:
    """What a user gives: a fire, its weather, towns; and how the files are written."""

    arrival: np.ndarray  # minutes, NaN where unburned, north row first
    weather: list[dict[str, Any]]
    towns: list[dict[str, Any]]
    unit: str = "min"
    header: dict[str, str] = field(default_factory=lambda: {"speed": "speed (m/s)"})
    """Titles of the columns of the weather that differ from their names."""
    town_header: dict[str, str] = field(default_factory=dict)
    layout: dict[str, Any] = field(default_factory=dict)  # separator, line ends, mark of the file
    raster: dict[str, Any] = field(default_factory=dict)  # corner, nodata, format
    options: list[str] = field(default_factory=list)
    copies: int = 1


def sound_inputs() -> Inputs:
    """A fire of two smoke cells for six hours in a wind that turns and rises."""
    rows, columns = np.mgrid[: _SHAPE[0] * 3, : _SHAPE[1] * 3]
    distance = np.hypot(rows - 24.0, columns - 25.5)
    arrival = np.where(distance < 2.6, 30.0 + 110.0 * distance, np.nan)
    weather = [
        {
            "hour": float(hour),
            "height": height,
            "speed": 1.5 + 0.1 * number + 0.02 * hour,
            "direction": 230.0 + 2.0 * hour + 3.0 * number,
            "depth": 1000.0,
        }
        for hour in range(10)
        for number, height in enumerate((10.0, 500.0, 2000.0, 6000.0))
    ]
    towns = [
        {"name": name, "x": x, "y": y, "population": people}
        for name, x, y, people in (
            ("Ash", 25500.0, 24000.0, 100.0),
            ("Birch", 34500.0, 29000.0, 50.0),
            ("Cedar", 28500.0, 27000.0, 2000.0),
        )
    ]
    return Inputs(arrival, weather, towns)


# -- writing the files


def _table(rows: list[dict[str, Any]], titles: dict[str, str], layout: dict[str, Any]) -> str:
    names = layout.get("columns") or list(rows[0])
    text = io.StringIO()
    writer = csv.writer(
        text, delimiter=layout.get("separator", ","), lineterminator=layout.get("end", "\n")
    )
    writer.writerow([titles.get(name, name) for name in layout.get("titles") or names])
    for row in rows:
        writer.writerow([_text(row.get(name, "")) for name in names])
    return layout.get("mark", "") + text.getvalue()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.7g}"


def _write_raster(path: Path, made: Inputs) -> Path:
    style = made.raster
    nodata = style.get("nodata", -9999.0)
    values = np.where(np.isnan(made.arrival), style.get("background", nodata), made.arrival)
    left, bottom = style.get("left", 0.0), style.get("bottom", 0.0)
    cell = style.get("cell", _RASTER)
    if style.get("tiff"):
        import rasterio

        corner = rasterio.Affine(cell, 0, left, 0, -cell, bottom + cell * len(values))
        shape = {"height": values.shape[0], "width": values.shape[1], "count": 1}
        with rasterio.open(
            path, "w", driver="GTiff", dtype="float32", nodata=nodata, transform=corner, **shape
        ) as file:
            file.write(values.astype(np.float32), 1)
            file.units = [style.get("label", "")]
        return path
    shift = cell / 2 if style.get("centre") else 0.0
    kind = "CENTER" if style.get("centre") else "CORNER"
    head = {
        "NCOLS": values.shape[1],
        "NROWS": values.shape[0],
        f"XLL{kind}": left + shift,
        f"YLL{kind}": bottom + shift,
        "CELLSIZE": cell,
    }
    if nodata is not None:
        head["NODATA_VALUE"] = nodata
    lines = [f"{name} {value:g}" for name, value in head.items()]
    lines += [" ".join(f"{value:.7g}" for value in row) for row in values]
    path.write_text("\n".join(lines) + "\n")
    return path


def answer(made: Inputs, model: Path, folder: Path) -> tuple[int, str, np.ndarray | None]:
    """Exit code, what was printed, and the means at the towns with the field of the dose."""
    folder.mkdir(parents=True)
    ending = ".tif" if made.raster.get("tiff") else ".asc"
    files = []
    for number in range(made.copies):
        name = made.raster.get("name", "fire") + (f"-{number}" if made.copies > 1 else "")
        files.append(_write_raster(folder / f"{name}{ending}", made))
    (folder / "weather.csv").write_text(
        _table(made.weather, made.header, made.layout), encoding="utf-8", newline=""
    )
    (folder / "towns.csv").write_text(
        _table(made.towns, made.town_header, made.layout.get("towns", {})), newline=""
    )
    common = ["--unit", made.unit, "--weather", folder / "weather.csv", *made.options]
    towns = ["--points", folder / "towns.csv", "--points-out", folder / "t.json"]
    code, printed = run_command(["ensemble", model, *files, *common, *towns])
    if code:
        return code, printed, None
    rows = json.loads((folder / "t.json").read_text())["places_table"]
    means = {row["name"]: row["mean"] for row in rows}
    values = [_number(means.get(town["name"])) for town in sound_inputs().towns]
    # Wider intervals of the same mean are another answer too.
    ends = {row["name"]: row.get("mean_upper") for row in rows}
    values += [_number(ends.get(town["name"])) for town in sound_inputs().towns]
    field_code, more, dose = _field(files[0], model, common, folder)
    if field_code:
        return field_code, printed + more, None
    return 0, printed + more, np.concatenate([values, dose])


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)


def _field(fire: Path, model: Path, common: list[Any], folder: Path) -> tuple[int, str, np.ndarray]:
    out = folder / "dose.nc"
    code, printed = run_command(["predict", model, fire, *common, "--quantity", "dose", "-o", out])
    if code:
        return code, printed, np.empty(0)
    with xr.open_dataset(out) as made:
        return 0, printed, np.asarray(made["smoke_dose"].values, dtype=float).ravel()


# -- changes that say the same


def _other_speed_unit(made: Inputs, rng: random.Random) -> None:
    unit, factor = rng.choice(
        (("mph", 2.2369363), ("km/h", 3.6), ("kt", 1.9438445), ("knots", 1.9438445))
    )
    title = rng.choice((f"speed ({unit})", f"wind_speed [{unit}]", f"speed {unit}"))
    _scale(made, "speed", factor)
    made.header["speed"] = title


def _other_depth_unit(made: Inputs, rng: random.Random) -> None:
    unit, factor = rng.choice((("ft", 1 / 0.3048), ("km", 1e-3)))
    _scale(made, "depth", factor)
    made.header["depth"] = f"depth ({unit})"


def _other_height_unit(made: Inputs, rng: random.Random) -> None:
    unit, factor = rng.choice((("ft", 1 / 0.3048), ("km", 1e-3)))
    _scale(made, "height", factor)
    made.header["height"] = f"height ({unit})"


def _scale(made: Inputs, column: str, factor: float) -> None:
    for row in made.weather:
        row[column] *= factor


def _to_direction(made: Inputs, rng: random.Random) -> None:
    for row in made.weather:
        row["direction"] = (row["direction"] + 180.0) % 360.0
    if rng.random() < 0.5:
        made.header["direction"] = "wind_to_direction"
    else:
        made.options += ["--direction-is", "to"]


def _components(made: Inputs, rng: random.Random) -> None:
    for row in made.weather:
        angle = np.deg2rad(row.pop("direction"))
        speed = row.pop("speed")
        row["u"], row["v"] = -speed * np.sin(angle), -speed * np.cos(angle)
    made.header |= {"u": "u (m/s)", "v": "v (m/s)"}


def _shuffled_columns(made: Inputs, rng: random.Random) -> None:
    made.layout["columns"] = rng.sample(list(made.weather[0]), len(made.weather[0]))


def _shuffled_rows(made: Inputs, rng: random.Random) -> None:
    rng.shuffle(made.weather)


def _more_columns(made: Inputs, rng: random.Random) -> None:
    for row in made.weather:
        row["station"] = rng.choice(("Alta", "3"))


def _other_layout(made: Inputs, rng: random.Random) -> None:
    made.layout |= {
        "separator": rng.choice((",", ";", "\t")),
        "end": rng.choice(("\n", "\r\n")),
        "mark": rng.choice(("", "\ufeff")),
    }


def _other_titles(made: Inputs, rng: random.Random) -> None:
    made.header["direction"] = rng.choice(("wdir", "wind_from", "wind_from_direction", "Direction"))
    made.header["height"] = rng.choice(("z", "height (m)", "Height"))


def _other_raster_unit(made: Inputs, rng: random.Random) -> None:
    made.unit, factor = rng.choice((("h", 1 / 60), ("s", 60.0)))
    made.arrival = made.arrival * factor


def _other_raster_form(made: Inputs, rng: random.Random) -> None:
    made.raster |= rng.choice(
        (
            {"centre": True},
            {"nodata": -1.0},
            {"tiff": True},
            {"tiff": True, "label": "minutes"},
            {"nodata": -32768.0},
            {"name": "Fire 7"},
        )
    )


def _wider_raster(made: Inputs, rng: random.Random) -> None:
    width = rng.choice((3, 6))
    made.arrival = np.pad(made.arrival, width, constant_values=np.nan)
    made.raster |= {"left": -width * _RASTER, "bottom": -width * _RASTER}


def _copies(made: Inputs, rng: random.Random) -> None:
    made.copies = rng.choice((2, 5, 10))


def _other_town_titles(made: Inputs, rng: random.Random) -> None:
    if rng.random() < 0.5:
        made.town_header |= {"x": "x (km)", "y": "y (km)"}
        for town in made.towns:
            town["x"], town["y"] = town["x"] / 1e3, town["y"] / 1e3
    made.town_header["name"] = rng.choice(("name", "place", "town", "Name"))
    if rng.random() < 0.3:
        for town in made.towns:
            town["county"] = "Grant"


# -- changes that make an input wrong


def _fill_in_weather(made: Inputs, rng: random.Random) -> None:
    rng.choice(made.weather)[rng.choice(("speed", "depth", "height"))] = rng.choice(_FILLS)


def _fill_in_direction(made: Inputs, rng: random.Random) -> None:
    rng.choice(made.weather)["direction"] = rng.choice((-9999.0, 9.96921e36, 999.0, 720.0, -1.0))


def _empty_cell(made: Inputs, rng: random.Random) -> None:
    row = rng.choice(made.weather)
    row[rng.choice(list(row))] = rng.choice(("", "NA", "NaN", "-", "calm"))


def _shifted_columns(made: Inputs, rng: random.Random) -> None:
    names = list(made.weather[0])
    step = rng.randrange(1, len(names))
    made.layout["titles"] = names[step:] + names[:step]
    made.layout["columns"] = names


def _unit_without_label(made: Inputs, rng: random.Random) -> None:
    made.header["speed"] = "speed"


def _hours_in_other_units(made: Inputs, rng: random.Random) -> None:
    _scale(made, "hour", rng.choice((60.0, 3600.0, 100.0, 1 / 24)))


def _contradicting_rows(made: Inputs, rng: random.Random) -> None:
    row = dict(rng.choice(made.weather))
    row["speed"] = row["speed"] + 3.0
    made.weather.insert(rng.randrange(len(made.weather)), row)


def _lost_hours(made: Inputs, rng: random.Random) -> None:
    last = rng.choice((2.0, 3.0))
    made.weather = [row for row in made.weather if row["hour"] <= last]


def _other_fire(made: Inputs, rng: random.Random) -> None:
    for row in made.weather:
        row["fire"] = "another"


def _wrong_raster_unit(made: Inputs, rng: random.Random) -> None:
    made.unit = rng.choice(("h", "d"))


def _no_missing_value(made: Inputs, rng: random.Random) -> None:
    made.raster |= {
        "nodata": None,
        "background": rng.choice((-9999.0, 9999.0, 9.96921e36, 0.0, 1e20)),
    }


def _unit_tag(made: Inputs, rng: random.Random) -> None:
    made.raster |= {"tiff": True, "label": rng.choice(("hours", "s", "days since 2020-08-01"))}


def _raster_in_degrees(made: Inputs, rng: random.Random) -> None:
    made.raster |= {"cell": rng.choice((0.01, 0.0003)), "left": -120.5, "bottom": 38.2}


def _stray_cell(made: Inputs, rng: random.Random) -> None:
    made.arrival[rng.randrange(3), rng.randrange(3)] = rng.choice((4e4, 1e6, 9.96921e36))


def _other_place(made: Inputs, rng: random.Random) -> None:
    made.raster |= {"left": rng.choice((5e5, -1.2e7, -120.0)), "bottom": rng.choice((4e6, 36.0))}


def _degrees(made: Inputs, rng: random.Random) -> None:
    for town in made.towns:
        town["x"], town["y"] = -118.0 + town["x"] * 1e-5, 36.0 + town["y"] * 1e-5


def _town_outside(made: Inputs, rng: random.Random) -> None:
    town = rng.choice(made.towns)
    town[rng.choice("xy")] += rng.choice((1e5, -1e6, 6e4))


def _towns_in_other_units(made: Inputs, rng: random.Random) -> None:
    for town in made.towns:
        town["x"], town["y"] = town["x"] / 1e3, town["y"] / 1e3


def _same_names(made: Inputs, rng: random.Random) -> None:
    made.towns[1] = {**made.towns[1], "name": made.towns[0]["name"]}


Change = Callable[[Inputs, random.Random], None]

SAME: tuple[Change, ...] = (
    _other_speed_unit, _other_depth_unit, _other_height_unit, _to_direction, _components,
    _shuffled_columns, _shuffled_rows, _more_columns, _other_layout, _other_titles,
    _other_raster_unit, _other_raster_form, _wider_raster, _copies, _other_town_titles,
)  # fmt: skip
WRONG: tuple[Change, ...] = (
    _fill_in_weather, _fill_in_direction, _empty_cell, _shifted_columns, _unit_without_label,
    _hours_in_other_units, _contradicting_rows, _lost_hours, _other_fire, _wrong_raster_unit,
    _no_missing_value, _stray_cell, _other_place, _degrees, _town_outside, _towns_in_other_units,
    _same_names, _unit_tag, _raster_in_degrees,
)  # fmt: skip


# -- trials


def prepare(folder: Path) -> None:
    """A small surrogate with carried smoke and error bars, and the answer to the sound inputs."""
    import sys

    sys.path.insert(0, "tests")
    from support.weather_fires import weather_fires

    fires = weather_fires(14, seed=3)
    fires.to_netcdf(folder / "train.nc")
    model = folder / "m.plume"
    settings = ["--preset", "quick", "--physics", "auto", "--all", "-o", model]
    code, printed = run_command(["train", folder / "train.nc", *settings])
    if code:
        raise RuntimeError(printed)
    code, printed, values = answer(sound_inputs(), model, folder / "sound")
    if values is None:
        raise RuntimeError(printed)
    np.save(folder / "sound.npy", values)
    (folder / "sound.txt").write_text("\n".join(sorted(_said(printed))))


def _said(printed: str) -> set[str]:
    """The warnings and notes of a command."""
    return {line for line in printed.splitlines() if line.startswith(("warning:", "note:"))}


def attempt(originals: Path, scratch: Path, rng: random.Random) -> str | tuple[str, str]:
    """One or two changes that say the same, or one that makes an input wrong, or both."""
    made = copy.deepcopy(sound_inputs())
    wrong = [rng.choice(WRONG)] if rng.random() < 0.6 else []
    same = rng.sample(SAME, rng.choice((0, 1)) if wrong else rng.choice((1, 2)))
    names = ", ".join(change.__name__[1:] for change in (*same, *wrong))
    try:
        for change in (*same, *wrong):
            change(made, rng)
    except (KeyError, TypeError):  # a column that an earlier change has replaced
        return UNCHANGED, "changes that exclude each other"
    code, printed, values = answer(made, originals / "m.plume", scratch / "fuzzed")
    if code:
        return (REFUSED if is_one_line(printed) else TRACEBACK), f"{names}\n{printed}"
    sound = np.load(originals / "sound.npy")
    assert values is not None
    scale = float(np.nanmax(np.abs(sound)))
    if values.shape == sound.shape and np.allclose(
        values, sound, rtol=1e-3, atol=_TOLERANCE * scale, equal_nan=True
    ):
        return UNCHANGED, names
    more = _said(printed) - set((originals / "sound.txt").read_text().splitlines())
    if more:
        return FOUND, f"{names}: {sorted(more)}"
    return CHANGED, f"{names}\n{printed}"


TARGET = Target("semantics", prepare, attempt, trials=10000, limit=60.0)
