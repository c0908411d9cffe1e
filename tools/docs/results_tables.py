"""Print the tables of docs/results/paper.md from a folder of results.

plumecast study all --data paper.zarr --out results/
python tools/docs/results_tables.py results/
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.paper.context import rows_of, select
from plumecast.paper.methods import title_of
from plumecast.paper.results import Finished, read_results
from plumecast.paper.shift import OTHERS
from plumecast.scores.tally import known_median


def line(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |")


def header(*cells: str) -> None:
    line(*cells)
    line(*["---"] * len(cells))


def number(value: float, digits: int = 2, unit: str = "") -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}{unit}"


def beside(ours: str, paper: float, digits: int = 2, unit: str = "") -> str:
    return ours if math.isnan(paper) else f"{ours} ({paper:.{digits}f}{unit})"


def print_summary(found: xr.Dataset) -> None:
    steps = ("encoding", "training", "tuning")
    header("ours (paper)", "AUC", "IoU", "deployable IoU", "error", *steps)
    for row in rows_of(found):
        line(
            row["title"],
            beside(number(row["auc"]), row["paper_auc"]),
            beside(number(row["iou"]), row["paper_iou"]),
            number(row["deployable_iou"]),
            number(row["median_error"]),
            *(beside(number(row[step], 2, " s"), row[f"paper_{step}"], 2, " s") for step in steps),
        )


def print_shift(found: xr.Dataset) -> None:
    droughts = found.attrs["droughts"].split(",")
    header("trained on, median IoU", *(f"tested on {name}" for name in droughts))
    for covariates in sorted(set(found.covariates.values.tolist())):
        for method in sorted(set(found.method.values.tolist())):
            for trained in [*droughts, OTHERS]:
                part = select(found, method=method, covariates=covariates, trained_on=trained)
                cells = [
                    number(known_median(select(part, tested_on=name).iou)) for name in droughts
                ]
                if any(cell != "–" for cell in cells):
                    extra = ", wind frame" if covariates else ""
                    line(f"{title_of(method)}{extra}: {trained}", *cells)


def print_curve(found: xr.Dataset) -> None:
    sizes = np.unique(found.ignitions.values).tolist()
    header("ignitions, deployable IoU", *map(str, sizes))
    for method in dict.fromkeys(found.method.values.tolist()):
        cells = []
        for size in sizes:
            part = select(found, method=method, ignitions=size)
            cells.append(number(float(part.deployable_iou[0])) if part.sizes["row"] else "–")
        line(title_of(method), *cells)


def print_times(finished: list[Finished]) -> None:
    header("study", "seconds", "CPU seconds")
    for item in finished:
        line(item.study.name, f"{item.record.seconds:.0f}", f"{item.record.cpu_seconds:.0f}")


def main() -> None:
    _, finished, _ = read_results(Path(sys.argv[1]))
    tables = {"summary": print_summary, "shift": print_shift, "learning-curve": print_curve}
    for item in finished:
        print(f"\n## {item.study.title}\n")
        for remark in item.study.remarks(item.finding):
            print(f"- {remark}")
        if item.study.name in tables:
            print()
            tables[item.study.name](item.finding)
    print("\n## Times\n")
    print_times(finished)


if __name__ == "__main__":
    main()
