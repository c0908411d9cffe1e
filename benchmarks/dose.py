"""Doses of smoke whose frames are hours apart, beside the true ones.

    python benchmarks/dose.py
    python benchmarks/dose.py --wrf mountains.nc --every 2 4

Simulated fires are made twice, with frames every six hours and every half hour, which give the true
dose of every cell. WRF fires with hourly frames (`--wrf`) are thinned. The recommended surrogate is
trained on the coarse frames of some fires and predicts the others. Doses are compared: that of the
predicted sum by the factors of training fires (`factors`), the predicted one (`predicted`), and the
trapezoid over the observed coarse frames (`frames`). Numbers are the median of the relative error,
and the 10, 50 and 90 % quantiles of the total, by hours since ignition, over all `--draws`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.scores.quantities import factors_at, find_quantity
from plumecast.simulator.ensemble import (
    DROUGHTS,
    PRESETS,
    World,
    ensemble_size,
    plan_fires,
    simulate,
)

ROWS = ("factors", "predicted", "frames")


def simulated(fires: int, hours: int = 24) -> tuple[xr.Dataset, np.ndarray]:
    """Fires with frames every six hours, and their true doses (snapshot, y, x)."""
    coarse, fine = (
        simulate(
            World.of(ensemble_size("weathers", fires, int(hours / gap)), seed=11, interval=gap),
            plan_fires(fires, DROUGHTS, 11, weathers=PRESETS["weathers"].weathers),
        )
        for gap in (6.0, 0.5)
    )
    assert coarse is not None
    assert fine is not None
    dose = pc.scores.as_quantity(fine["smoke"], "dose")
    return coarse, dose.values[np.isin(fine["hours"].values, coarse["hours"].values)]


def thinned(path: Path, every: int) -> tuple[xr.Dataset, np.ndarray]:
    """WRF fires with each `every`-th hourly frame, and the doses of all their frames."""
    data = xr.load_dataset(path)
    data["smoke"] = data["smoke"].where(data["smoke"] >= 0.01, 0.0)
    count = int(data["hours"].values.max())
    sums = data["smoke"].values.reshape(-1, count, *data["smoke"].shape[1:])
    frames = np.diff(np.concatenate([0.0 * sums[:, :1], sums], axis=1), axis=1)
    dose = np.cumsum(frames, axis=1) - 0.5 * frames
    kept = slice(every - 1, None, every)
    coarse = data.isel(snapshot=data["hours"].values % every == 0)
    made = np.cumsum(frames[:, kept], axis=1).reshape(coarse["smoke"].shape)
    coarse["smoke"] = coarse["smoke"].copy(data=made)
    coarse["smoke"].attrs[INTERVAL] = float(every)
    return coarse, dose[:, kept].reshape(made.shape)


def doses(train: xr.Dataset, test: xr.Dataset) -> dict[str, np.ndarray]:
    """The doses of ROWS of the test fires."""
    surrogate = pc.fit_surrogate(train, "recommended", physics="calibrated")
    smoke = surrogate.predict(test.drop_vars("smoke"))
    hours, interval = test["hours"].values, float(test["smoke"].attrs[INTERVAL])
    factors = factors_at(hours, find_quantity("dose"), interval, smoke.attrs)
    return {
        "factors": smoke.values * factors[:, None, None],
        "predicted": pc.scores.as_quantity(smoke, "dose").values,
        "frames": pc.scores.as_quantity(test["smoke"], "dose").values,
    }


def scored(data: xr.Dataset, true: np.ndarray, share: float, draws: int) -> list[str]:
    """Lines of a table."""
    names, fires = np.unique(data["fire_id"].values), data["fire_id"].values
    hours = np.unique(data["hours"].values)
    found: dict[str, list[np.ndarray]] = {row: [] for row in ROWS}
    for seed in range(draws):
        drawn = np.random.default_rng(seed).permutation(names)[: round(share * names.size)]
        own = np.isin(fires, drawn)
        truth = true[~own].reshape(-1, hours.size, true[0].size)
        for row, found_dose in doses(data.isel(snapshot=own), data.isel(snapshot=~own)).items():
            dose = found_dose.reshape(truth.shape)
            error = np.sqrt(((dose - truth) ** 2).sum(axis=2) / (truth**2).sum(axis=2))
            found[row].append(np.stack([error, dose.sum(axis=2) / truth.sum(axis=2)]))
    lines = ["| | " + " | ".join(f"{hour:g} h" for hour in hours) + " |"]
    lines.append("| --- " * (hours.size + 1) + "|")
    for row, parts in found.items():
        error, total = np.concatenate(parts, axis=1)
        cells = [
            f"{np.median(error[:, k]):.2f}; "
            + ", ".join(f"{value:.2f}" for value in np.quantile(total[:, k], [0.1, 0.5, 0.9]))
            for k in range(hours.size)
        ]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wrf", type=Path, help="a store of WRF fires with hourly frames")
    parser.add_argument("--every", type=int, nargs="+", default=[2, 4], help="hours between frames")
    parser.add_argument("--fires", type=int, default=40, help="simulated fires")
    parser.add_argument("--draws", type=int, default=3, help="draws of the training fires")
    given = parser.parse_args()
    if given.wrf is None:
        print("\n".join(scored(*simulated(given.fires), share=0.4, draws=given.draws)))
    else:
        for every in given.every:
            print(f"frames every {every} h")
            print("\n".join(scored(*thinned(given.wrf, every), share=2 / 3, draws=given.draws)))


if __name__ == "__main__":
    main()
