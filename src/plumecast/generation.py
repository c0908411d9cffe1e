"""Simulate an ensemble into a snapshot store: resumable by fire, the same for any workers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.blocks import Runner, row_blocks
from plumecast.errors import PlumecastError
from plumecast.matrix import GRID_TOLERANCE
from plumecast.snapshot_store import append_fire, open_snapshots, stored_fires
from plumecast.source.simulator import ensemble
from plumecast.source.simulator.fire import BLOCK, smoke_centres
from plumecast.source.simulator.landscape import Landscape, read_landscape
from plumecast.source.simulator.weather import STEERING_STRENGTH, check_steering

SETTINGS = "simulation"
"""Attribute of a simulated store: the settings that made it, as JSON."""

FIRST_DRAWN = 1_000_000
"""Number of the first ignition that is drawn: beyond those of any ensemble that was simulated, so
that a surrogate trained on it has seen none of them."""

TOGETHER = 8
"""Fires that are made and counted together: few enough to keep all workers of a cluster busy."""


def simulate(
    out: str | Path | None = None,
    *,
    preset: str | None = None,
    ignitions: int | None = None,
    droughts: Sequence[str] = ensemble.DROUGHTS,
    checkpoints: int | None = None,
    seed: int = 0,
    workers: int = 1,
    runner: Runner | None = None,
    dem: str | Path | None = None,
    fuels: str | Path | None = None,
    bare_where_missing: bool = False,
    steering: float | None = None,
    progress: Callable[[int, int, str], object] | None = None,
) -> xr.Dataset:
    """Simulate fires and their smoke: `ignitions` times `droughts`, `checkpoints` six hours apart.

    With `out`, every fire is one commit to that store; a store that holds some of the fires is
    continued, one made with other settings refused. Without, the snapshots are kept in memory.
    `preset` ("demo" or "paper") sets what is not given; without it, the grid is the paper's. `dem`
    and `fuels` are GeoTIFFs of elevation and Scott & Burgan fuels that replace the synthetic
    landscape, `bare_where_missing` takes their holes as bare ground. `steering` is how strongly
    terrain turns the wind along its valleys, 0 not at all and 1.2 by default: wind along a straight
    deep valley gains half of it times its speed, wind across loses as much. A `runner`
    (`pc.cluster`) has fires simulated by a cluster; only this process writes.
    `progress(finished, total, fire_id)` follows every fire.
    """
    size = ensemble.ensemble_size(preset, ignitions, checkpoints)
    landscape = _landscape(dem, fuels, bare_where_missing)
    strength = STEERING_STRENGTH if steering is None else float(steering)
    check_steering(strength)
    settings = {
        "checkpoints": size.checkpoints,
        "years": size.years,
        "shape": list(size.shape),
        "cell": size.cell,
        "seed": seed,
        "dem": _recorded(dem),
        "fuels": _recorded(fuels),
        "bare_where_missing": bare_where_missing,
        "steering": strength,
    }
    if out is not None:
        _refuse_other_settings(Path(out), settings)

    def append(fire: xr.Dataset) -> None:
        assert out is not None
        append_fire(out, fire.assign_attrs({SETTINGS: json.dumps(settings)}))

    made = ensemble.simulate(
        preset=preset,
        ignitions=size.ignitions,
        checkpoints=size.checkpoints,
        droughts=droughts,
        seed=seed,
        workers=workers,
        runner=runner,
        append=None if out is None else append,
        done=frozenset() if out is None else stored_fires(out),
        progress=progress,
        landscape=landscape,
        steering=strength,
    )
    if out is not None:
        return open_snapshots(out)
    assert made is not None
    return made


@dataclass(frozen=True, slots=True)
class DrawnFires:
    """Fires of the embedded simulator, made without their smoke when and where they are wanted."""

    simulator: ensemble.Simulator
    plans: Sequence[ensemble.FirePlan]

    def parts(self) -> list[Sequence[ensemble.FirePlan]]:
        """The planned fires, TOGETHER at a time."""
        return [self.plans[rows] for rows in row_blocks(len(self.plans), TOGETHER)]

    def make(self, part: Sequence[ensemble.FirePlan]) -> xr.Dataset:
        """The snapshots of some of them."""
        return ensemble.joined([self.simulator.fire(plan, with_smoke=False) for plan in part])


def draw_fires(
    count: int,
    *,
    like: xr.Dataset | None = None,
    preset: str | None = None,
    droughts: Sequence[str] = ensemble.DROUGHTS,
    seed: int = 0,
) -> DrawnFires:
    """Fires for `ensemble_statistics`, drawn by the embedded simulator and never stored.

    Landscape and weather are those of `simulate` with the same `preset` and `seed` and without a
    terrain, fuels or steering of its own; the ignitions are others. Each ignition burns under every
    one of `droughts` in turn, until there are `count` fires. Smoke does not act on a fire, so only
    its front is run. `like` has the y and x that the fires must be on (`surrogate.grid`); without a
    `preset` it is the one with that grid.
    """
    if count < 1:
        raise PlumecastError(f"simulate={count}; draw at least one fire")
    size = ensemble.PRESETS[_preset_on(like, preset)]
    world = ensemble.World(seed, size.checkpoints, size.years, size.shape, size.cell)
    ignitions = -(-count // max(1, len(droughts)))
    plans = ensemble.plan_fires(ignitions, droughts, seed, first=FIRST_DRAWN)
    return DrawnFires(ensemble.Simulator(world), plans[:count])


def _preset_on(like: xr.Dataset | None, preset: str | None) -> str:
    """The preset that was given, or the one whose grid is that of `like`."""
    name = preset or "paper"
    ensemble.ensemble_size(name, None, None)  # refuses one that is unknown
    if like is None:
        return name
    fitting = [known for known in ensemble.PRESETS if _has_grid(known, like)]
    if not fitting or (preset is not None and preset not in fitting):
        advice = f"take preset '{fitting[0]}'" if fitting else "no preset has it"
        what = f"preset '{preset}' is" if preset else "simulated fires are"
        raise PlumecastError(
            f"{what} not on the surrogate's grid of {like.sizes.get('y')} × {like.sizes.get('x')} "
            f"cells; {advice}"
        )
    return preset or fitting[0]


def _has_grid(preset: str, like: xr.Dataset) -> bool:
    size = ensemble.PRESETS[preset]
    shape = (size.shape[0] // BLOCK, size.shape[1] // BLOCK)
    cell = size.cell * BLOCK
    return all(
        axis in like.coords
        and like[axis].shape == centres.shape
        and np.allclose(like[axis].values, centres, rtol=0.0, atol=GRID_TOLERANCE * centres[-1])
        for axis, centres in zip("yx", smoke_centres(shape, cell), strict=True)
    )


def _recorded(path: str | Path | None) -> str | None:
    """A raster by its content, so that another file of the same name is another landscape."""
    if path is None:
        return None
    if not Path(path).is_file():
        raise PlumecastError(f"{path} does not exist or is not a file")
    return f"{Path(path).name} sha256:{hashlib.sha256(Path(path).read_bytes()).hexdigest()[:20]}"


def _landscape(
    dem: str | Path | None, fuels: str | Path | None, bare_where_missing: bool
) -> Landscape | None:
    """The rasters' landscape without the rows and columns in the north and east that do not fill a
    smoke cell; None without rasters."""
    if (dem is None) != (fuels is None):
        raise PlumecastError("a landscape needs both an elevation and a fuel raster; give both")
    if dem is None or fuels is None:
        return None
    whole = read_landscape(dem, fuels, bare_where_missing=bare_where_missing)
    rows, columns = (size - size % BLOCK for size in whole.shape)
    return Landscape(whole.elevation[:rows, :columns], whole.fuel[:rows, :columns], whole.cell)


def _refuse_other_settings(out: Path, settings: dict[str, Any]) -> None:
    if not stored_fires(out):
        return
    recorded = open_snapshots(out).attrs.get(SETTINGS)
    if recorded is None:
        raise PlumecastError(f"{out} holds fires from another source; choose another path")
    # Stores made before steering was a choice have the default and do not say so.
    other = {"steering": STEERING_STRENGTH} | json.loads(recorded)
    changed = [name for name in settings if other.get(name) != settings[name]]
    if changed:
        name = changed[0]
        raise PlumecastError(
            f"{out} was simulated with {name}={other.get(name)}, not {settings[name]}; "
            "repeat those settings to continue it, or choose another path"
        )
