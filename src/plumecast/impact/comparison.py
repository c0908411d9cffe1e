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


@dataclass(frozen=True, slots=True)
class Comparison:
    """Scenarios against a reference."""

    reference: str
    places: xr.Dataset  # (scenario, place)
    maps: xr.Dataset | None  # (scenario, y, x)
    notes: tuple[str, ...]  # what a reader of the numbers must know


@dataclass(frozen=True, slots=True)
class Values:
    """A quantity of the fires of two scenarios at C places: some cells, and weighted means of all.

    A weighted mean has the weighted mean of the shares above a threshold: with weights by
    population, the share of persons above, not whether the mean over all persons is above.
    """

    a: np.ndarray  # (M, P) of the reference, in all cells
    b: np.ndarray  # (N, P)
    a_ignitions: np.ndarray  # (M,)
    b_ignitions: np.ndarray  # (N,)
    pairs: Pairs | None
    cells: np.ndarray | None = None  # of the places; None for all of them
    weights: tuple[np.ndarray, ...] = ()  # (P,) each, which add up to 1

    def difference(self) -> Difference:
        """The difference of the means."""
        a, b = self._columns(self.a), self._columns(self.b)
        if self.pairs is None:
            return unpaired_difference(a, self.a_ignitions, b, self.b_ignitions)
        return paired_difference(*self.pairs.means(a, b), self.pairs.ignitions)

    def exceedance(self, threshold: float, coverage: float) -> tuple[np.ndarray, ...]:
        """Shares of fires above a threshold in both, and the interval of their difference."""
        a, b = (self._columns(part > threshold) for part in (self.a, self.b))
        clusters = self.a_ignitions, self.b_ignitions
        if self.pairs is not None:
            a, b = self.pairs.means(a, b)
            clusters = self.pairs.ignitions, self.pairs.ignitions
        return share_difference(
            a, clusters[0], b, clusters[1], paired=self.pairs is not None, coverage=coverage
        )

    def _columns(self, values: np.ndarray) -> np.ndarray:
        """(M, P) → (M, C)."""
        means = [values @ weights for weights in self.weights]
        chosen = values if self.cells is None else values[:, self.cells]
        return np.column_stack([chosen, *means]) if means else chosen


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the numbers are: the quantity, the coverage of intervals, the thresholds."""

    quantity: Quantity
    coverage: float
    thresholds: tuple[float, ...]
    reference: str


def place_table(values: Mapping[str, Values], names: Sequence[str], meaning: Meaning) -> xr.Dataset:
    """The differences (scenario, place) of scenarios from the reference."""
    coverage = meaning.coverage
    made = _labelled(values, meaning, {"place": len(names)}).assign_coords(place=list(names))
    clear = holm(made["chance"].values, coverage) & ~made["rough"].values
    text = f"clear at {100 * coverage:g} % among all places and scenarios (Holm), not rough"
    return made.assign(clear=([SCENARIO, "place"], clear, {"long_name": text}))


def difference_maps(values: Mapping[str, Values], grid: xr.Dataset, meaning: Meaning) -> xr.Dataset:
    """The differences (scenario, y, x) of scenarios from the reference, in every cell."""
    sizes = {axis: grid.sizes[axis] for axis in ("y", "x")}
    made = _labelled(values, meaning, sizes)
    made["rough"] = made["rough"].astype(np.int8)
    crs = [str(name) for name, item in grid.coords.items() if is_mapping(item)]
    for name in made.data_vars if crs else ():
        made[name].attrs["grid_mapping"] = crs[0]
    return made.assign_coords(grid.coords)


def _differences(values: Values, meaning: Meaning, *, table: bool) -> dict[str, np.ndarray]:
    """By name, the difference (…, C) and what goes with it, more of it for a table."""
    change, coverage = values.difference(), meaning.coverage
    low, high = change.interval(coverage)
    made = {
        "difference": change.change.mean, "lower": low, "upper": high, "chance": change.chance(),
        "relative": change.relative_mean(coverage), "rough": change.rough(),
    }  # fmt: skip
    if table:
        low_share, high_share = change.relative_interval(coverage)
        made |= {
            "reference_mean": change.base.mean, "scenario_mean": change.other,
            "relative_lower": low_share, "relative_upper": high_share,
            "better": change.better, "worse": change.worse,
            "more_ignitions": change.more_ignitions(coverage),
        }  # fmt: skip
    if meaning.thresholds:
        shares = [values.exceedance(level, coverage) for level in meaning.thresholds]
        p, q, low, high = (np.stack(part) for part in zip(*shares, strict=True))
        made |= {
            "reference_exceedance": p, "scenario_exceedance": q, "exceedance_difference": q - p,
            "exceedance_lower": low, "exceedance_upper": high,
        }  # fmt: skip
    return made


def _labelled(
    values: Mapping[str, Values], meaning: Meaning, sizes: Mapping[str, int]
) -> xr.Dataset:
    """The differences, with how many fires the scenarios have and how they were compared."""
    table = "place" in sizes
    rows = [_differences(item, meaning, table=table) for item in values.values()]
    texts = _texts(meaning.quantity.units, 100 * meaning.coverage)
    made = {}
    for name in rows[0]:
        parts = np.stack([row[name] for row in rows])
        lead = [SCENARIO, "threshold"] if "exceedance" in name else [SCENARIO]
        shaped = parts.reshape(*parts.shape[:-1], *sizes.values())
        made[name] = ([*lead, *sizes], shaped, texts[name])
    items = list(values.values())
    paired = [item.pairs for item in items]
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
    return xr.Dataset(made, coords=coords, attrs=attrs)


def _texts(unit: str, level: float) -> dict[str, dict[str, str]]:
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


def county_column(place: xr.Dataset) -> dict[str, str]:
    """The county of a place as a column, if the user's table had one."""
    return {"county": str(place["county"].item())} if "county" in place.coords else {}


def table_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """A row for every scenario and place; an exceedance has its threshold in its name."""
    table = comparison.places
    for scenario in table[SCENARIO].values:
        one = table.sel({SCENARIO: scenario})
        for place in table["place"].values:
            row: dict[str, Any] = {
                "place": str(place),
                **county_column(one.sel(place=place)),
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
    kept = ("reference", "quantity", "units", "coverage", "fires_from", "history")
    content = {
        "comparison": {
            name: value
            for name, value in comparison.places.attrs.items()
            if name in kept or name.startswith("model_")
        },
        "notes": list(comparison.notes),
        "places": [
            {
                name: None if isinstance(value, float) and not np.isfinite(value) else value
                for name, value in row.items()
            }
            for row in table_rows(comparison)
        ],
    }
    with atomic_write(path, overwrite=False) as partial:
        partial.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return Path(path)
