"""The how-to page that needs a cluster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from plumecast import open_snapshots
from plumecast.data import append_fire
from plumecast.simulator import ensemble
from support.raster_files import write_landscape
from support.snapshots import make_snapshots

pytest.importorskip("distributed", reason="Dask distributed is not installed")


@pytest.fixture
def small_demo(monkeypatch):
    """The preset `demo` of the simulator with less ground and fewer checkpoints."""
    less = {"checkpoints": 3, "shape": (120, 160)}
    presets = {**ensemble.PRESETS, "demo": replace(ensemble.PRESETS["demo"], **less)}
    monkeypatch.setattr(ensemble, "PRESETS", presets)


@pytest.mark.usefixtures("small_demo")
def test_a_million_fires(tmp_path, follow_page):
    append_fire(tmp_path / "ensemble.zarr", make_snapshots(fires=24, shape=(5, 6)))
    append_fire(tmp_path / "fires.zarr", make_snapshots(fires=40, shape=(5, 6), seed=5))
    write_landscape(tmp_path, (60, 80), 600.0)
    printed = follow_page("a-million-fires.md")
    assert "statistics of 160 snapshots of 40 fires" in printed
    assert "statistics of 36 snapshots of 12 fires" in printed
    assert "statistics of 24 snapshots of 12 fires" in printed
    one, other = (xr.load_dataset(tmp_path / name) for name in ("stats.nc", "again.nc"))
    np.testing.assert_allclose(other.mean_log_smoke, one.mean_log_smoke, rtol=1e-9)
    assert one.smoke_quantile.sizes["quantile"] == 3
    assert open_snapshots(tmp_path / "smoke.nc", fields=["smoke"]).sizes["snapshot"] == 160
