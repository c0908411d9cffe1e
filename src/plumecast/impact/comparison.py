"""The labelled differences of scenarios from a reference, at places and as maps; their files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base import tables
from plumecast.base.files import atomic_write
from plumecast.base.version import __version__
from plumecast.data.crs import is_mapping
from plumecast.impact.difference import (
    Difference,
    holm,
    paired_difference,
    share_difference,
    unpaired_difference,
)
from plumecast.impact.scenarios import Pairs
from plumecast.scores.quantities import Quantity
from plumecast.workflows.export import export_statistics

SCENARIO = "scenario"

MAPPED = ("difference", "lower", "upper", "chance", "relative", "rough")
"""Variables of `maps` without a threshold."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Scenarios against a reference."""

    reference: str
    places: xr.Dataset  # (scenario, place)
    maps: xr.Dataset | None  # (scenario, y, x)
    notes: tuple[str, ...]  # what a reader of the numbers must know


@dataclass(frozen=True, slots=True)
class Values:
    """A quantity of the fires of two scenarios in some cells."""

    a: np.ndarray  # (M, P) of the reference
    b: np.ndarray  # (N, P)
    a_ignitions: np.ndarray  # (M,)
    b_ignitions: np.ndarray  # (N,)
    pairs: Pairs | None
    parts: tuple[Values, ...] = ()  # if it was joined: whose columns these are
    of: Values | None = None  # if it is a weighted mean: of which cells
    weights: np.ndarray | None = None  # … and with which weights (P,)

    def at(self, cells: np.ndarray) -> Values:
        """The values in some of the cells."""
        return Values(
            self.a[:, cells], self.b[:, cells], self.a_ignitions, self.b_ignitions, self.pairs
        )

    def weighted(self, weights: np.ndarray) -> Values:
        """The weighted mean over the cells; weights (P,) add up to 1."""
        a, b = ((part @ weights)[:, None] for part in (self.a, self.b))
        return Values(
            a, b, self.a_ignitions, self.b_ignitions, self.pairs, of=self, weights=weights
        )

    def difference(self) -> Difference:
        """The difference of the means."""
        if self.pairs is None:
            return unpaired_difference(self.a, self.a_ignitions, self.b, self.b_ignitions)
        return paired_difference(*self.pairs.means(self.a, self.b), self.pairs.ignitions)

    def exceedance(self, threshold: float, coverage: float) -> tuple[np.ndarray, ...]:
        """Shares of fires above a threshold in both, and the interval of their difference.

        A weighted mean has the weighted mean of the shares: with weights by population, the share
        of persons above, not whether the mean over all persons is above.
        """
        if self.parts:
            found = [part.exceedance(threshold, coverage) for part in self.parts]
            return tuple(np.concatenate(columns) for columns in zip(*found, strict=True))
        a, b = self._above(threshold)
        if self.pairs is None:
            clusters = self.a_ignitions, self.b_ignitions
        else:
            a, b = self.pairs.means(a, b)
            clusters = self.pairs.ignitions, self.pairs.ignitions
        return share_difference(
            a, clusters[0], b, clusters[1], paired=self.pairs is not None, coverage=coverage
        )

    def _above(self, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """(M, P) and (N, P) whether, or in which share of the weights, fires are above."""
        if self.of is None or self.weights is None:
            return self.a > threshold, self.b > threshold
        inside = self.of._above(threshold)
        a, b = ((part @ self.weights)[:, None] for part in inside)
        return a, b


def beside(parts: Sequence[Values]) -> Values:
    """The columns of several values of the same fires, one after the other."""
    a, b = (np.hstack(columns) for columns in ([p.a for p in parts], [p.b for p in parts]))
    first = parts[0]
    return Values(a, b, first.a_ignitions, first.b_ignitions, first.pairs, parts=tuple(parts))


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the numbers are: the quantity, the coverage of intervals, the thresholds."""

    quantity: Quantity
    coverage: float
    thresholds: tuple[float, ...]
    reference: str


def place_table(values: Mapping[str, Values], names: Sequence[str], meaning: Meaning) -> xr.Dataset:
    """The differences (scenario, place) of scenarios from the reference."""
    unit, level = meaning.quantity.units, 100 * meaning.coverage
    columns: dict[str, list[np.ndarray]] = {}
    for item in values.values():
        found = item.difference()
        low, high = found.interval(meaning.coverage)
        low_share, high_share = found.relative_interval(meaning.coverage)
        row = {
            "reference_mean": found.reference, "scenario_mean": found.other,
            "difference": found.change.mean, "lower": low, "upper": high,
            "relative": found.relative_mean(meaning.coverage),
            "relative_lower": low_share, "relative_upper": high_share,
            "chance": found.chance(), "better": found.better, "worse": found.worse,
            "more_ignitions": found.more_ignitions(meaning.coverage), "rough": found.rough(),
        } | _exceedances(item, meaning)  # fmt: skip
        for name, column in row.items():
            columns.setdefault(name, []).append(column)
    said = _sayings(unit, level)
    made = {
        name: (_dims(name, "place"), np.stack(rows), said[name]) for name, rows in columns.items()
    }
    chances = np.stack(columns["chance"])
    made["clear"] = (
        [SCENARIO, "place"],
        holm(chances, meaning.coverage) & ~np.stack(columns["rough"]),
        {"long_name": f"clear at {level:g} % among all places and scenarios (Holm), not rough"},
    )
    return _labelled(made, values, meaning).assign_coords(place=("place", list(names)))


def difference_maps(values: Mapping[str, Values], grid: xr.Dataset, meaning: Meaning) -> xr.Dataset:
    """The differences (scenario, y, x) of scenarios from the reference, in every cell."""
    shape = (grid.sizes["y"], grid.sizes["x"])
    fields: dict[str, list[np.ndarray]] = {}
    for item in values.values():
        found = item.difference()
        low, high = found.interval(meaning.coverage)
        rough = found.rough().astype(np.int8)
        relative = found.relative_mean(meaning.coverage)
        parts = (found.change.mean, low, high, found.chance(), relative, rough)
        row = dict(zip(MAPPED, parts, strict=True)) | _exceedances(item, meaning)
        for name, field in row.items():
            fields.setdefault(name, []).append(field.reshape(*field.shape[:-1], *shape))
    said = _sayings(meaning.quantity.units, 100 * meaning.coverage)
    crs = [str(name) for name, item in grid.coords.items() if is_mapping(item)]
    mapping = {"grid_mapping": crs[0]} if crs else {}
    made = {
        name: (_dims(name, "y", "x"), np.stack(rows), {**said[name], **mapping})
        for name, rows in fields.items()
    }
    return _labelled(made, values, meaning).assign_coords(grid.coords)


def _exceedances(values: Values, meaning: Meaning) -> dict[str, np.ndarray]:
    if not meaning.thresholds:
        return {}
    found = [values.exceedance(level, meaning.coverage) for level in meaning.thresholds]
    p, q, low, high = (np.stack(part) for part in zip(*found, strict=True))
    return {
        "reference_exceedance": p, "scenario_exceedance": q, "exceedance_difference": q - p,
        "exceedance_lower": low, "exceedance_upper": high,
    }  # fmt: skip


def _dims(name: str, *last: str) -> list[str]:
    return [SCENARIO, *(["threshold"] if "exceedance" in name else []), *last]


def _labelled(
    made: Mapping[str, Any], values: Mapping[str, Values], meaning: Meaning
) -> xr.Dataset:
    """A Dataset with the scenarios, how many fires they have and how they were compared."""
    paired = [item.pairs for item in values.values()]
    items = list(values.values())
    counts = {
        "paired": [pairs is not None for pairs in paired],
        "pairs": [0 if pairs is None else pairs.ignitions.size for pairs in paired],
        "ignitions": [
            min(np.unique(item.a_ignitions).size, np.unique(item.b_ignitions).size)
            if item.pairs is None
            else item.pairs.shared
            for item in items
        ],
    }
    coords: dict[str, Any] = {SCENARIO: list(values)}
    coords |= {name: (SCENARIO, column) for name, column in counts.items()}
    if meaning.thresholds:
        said = {"units": meaning.quantity.units, "long_name": meaning.quantity.long_name}
        coords["threshold"] = ("threshold", list(meaning.thresholds), said)
    attrs = {
        "Conventions": "CF-1.11",
        "title": f"Differences of smoke from scenario {meaning.reference}",
        "history": f"plumecast {__version__} compare",
        "reference": meaning.reference,
        "quantity": meaning.quantity.long_name,
        "units": meaning.quantity.units,
        "coverage": meaning.coverage,
        "fires": max(item.b.shape[0] for item in items),
        "snapshots": sum(item.b.shape[0] for item in items) + items[0].a.shape[0],
        "comment": "intervals contain the sampling of fires only, not the error of a surrogate",
    }
    return xr.Dataset(dict(made), coords=coords, attrs=attrs)


def _sayings(unit: str, level: float) -> dict[str, dict[str, str]]:
    """Long name and unit of every variable."""
    return {
        name: {"long_name": text, "units": units}
        for name, units, text in (
            ("reference_mean", unit, "mean over the fires of the reference"),
            ("scenario_mean", unit, "mean over the fires of the scenario"),
            ("difference", unit, "scenario minus reference, mean over fires"),
            ("lower", unit, f"lower end of the {level:g} % interval of the difference"),
            ("upper", unit, f"upper end of the {level:g} % interval of the difference"),
            ("relative", "1", "difference over the mean of the reference"),
            ("relative_lower", "1", f"lower end of the {level:g} % interval of relative"),
            ("relative_upper", "1", f"upper end of the {level:g} % interval of relative"),
            ("chance", "1", "chance that the mean of the scenario is lower"),
            ("better", "1", "share of the pairs of fires in which the scenario has less smoke"),
            ("worse", "1", "share of the pairs of fires in which the scenario has more smoke"),
            ("more_ignitions", "1", "ignitions to add until the interval excludes 0"),
            ("rough", "1", "the differences are too skewed for the interval (Cochran's rule)"),
            ("reference_exceedance", "1", "share of the reference's fires above the threshold"),
            ("scenario_exceedance", "1", "share of the scenario's fires above the threshold"),
            ("exceedance_difference", "1", "difference of the shares above the threshold"),
            ("exceedance_lower", "1", f"lower end of the {level:g} % interval of that difference"),
            ("exceedance_upper", "1", f"upper end of the {level:g} % interval of that difference"),
        )
    }


def export_maps(maps: xr.Dataset, path: str | Path) -> list[Path]:
    """Write the maps in the format that the ending of `path` names; never overwrites.

    `.tif` writes a file for each scenario and field, such as `diff_treated_lower.tif` for
    `diff.tif`. Returns the path, or the patterns of the names.
    """
    where = Path(path)
    if where.suffix != ".tif":
        return [export_statistics(maps, where)]
    parts = ((str(name), maps.sel({SCENARIO: name}, drop=True)) for name in maps[SCENARIO].values)
    return [export_statistics(part, _named(where, name)) for name, part in parts]


def _named(path: Path, scenario: str) -> Path:
    label = re.sub(r"[^\w.-]+", "-", scenario)
    return path.with_name(f"{path.stem}_{label}{path.suffix}")


def table_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """A row for every scenario and place; an exceedance has its threshold in its name."""
    table = comparison.places
    for scenario in table[SCENARIO].values:
        one = table.sel({SCENARIO: scenario})
        for place in table["place"].values:
            row: dict[str, Any] = {
                "place": str(place),
                "reference": comparison.reference,
                "scenario": str(scenario),
                "quantity": table.attrs["quantity"],
                "units": table.attrs["units"],
            }
            row |= {name: one[name].item() for name in ("paired", "ignitions")}
            for name, item in one.sel(place=place).data_vars.items():
                if "threshold" in item.dims:
                    levels = zip(item["threshold"].values, item.values, strict=True)
                    row |= {f"{name}_{level:g}": float(value) for level, value in levels}
                else:
                    row[str(name)] = item.item()
            yield row


def write_table(comparison: Comparison, path: str | Path) -> Path:
    """Write the table of the places as CSV; unknown numbers are left out. Never overwrites."""
    rows = list(table_rows(comparison))
    cells = [[*row.values()] for row in rows]
    return tables.write_table(path, list(rows[0]), cells, floats=".6g", overwrite=False)


def write_json(comparison: Comparison, path: str | Path) -> Path:
    """Write the table of the places and the notes as JSON; unknown numbers are null."""
    attrs = comparison.places.attrs
    kept = ("reference", "quantity", "units", "coverage", "fires_from", "history")
    content = {
        "comparison": {
            name: value
            for name, value in attrs.items()
            if name in kept or name.startswith("model_")
        },
        "notes": list(comparison.notes),
        "places": [
            {key: _json(value) for key, value in row.items()} for row in table_rows(comparison)
        ],
    }
    return _write(Path(path), json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> Path:
    with atomic_write(path, overwrite=False) as partial:
        partial.write_text(text, encoding="utf-8")
    return path


def _json(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
