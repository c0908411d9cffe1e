"""Towns in tables and on maps: their columns, where they are, and numbers without noise."""

from __future__ import annotations

import csv
import zipfile

import numpy as np
import pytest
import rasterio

import plumecast as pc
from plumecast.app.maps.draw import map_content
from plumecast.app.maps.html import page_data
from plumecast.impact.solar_loss import Unrecorded
from plumecast.workflows.statistics.point_table import NOISE, point_columns
from support.plants import smoky, write_plants
from support.projected import on_earth

TOWNS = "name,latitude,longitude,county\nWeed,37.89415,-120.23606,Siskiyou\nDry,38.1,-119.9,\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Fires, true smoke of others, a surrogate and a table of towns."""
    base = tmp_path_factory.mktemp("towns")
    fires = on_earth(fires=8, checkpoints=2, shape=(16, 20))
    truth = on_earth(fires=8, checkpoints=2, shape=(16, 20), seed=1)
    for name in ("fire_id", "ignition_id"):
        truth[name] = "snapshot", np.char.add("true-", truth[name].values.astype(str))
    fires.to_netcdf(base / "fires.nc")
    truth.isel(snapshot=truth.hours.values == 6.0).to_netcdf(base / "truth.nc")
    pc.fit_surrogate(fires, "paper-linear").save(base / "m.plume")
    (base / "towns.csv").write_text(TOWNS)
    return base


def test_the_county_of_a_town_is_a_column_of_the_answer(made, run, tmp_path):
    options = ("--points", made / "towns.csv", "--points-out", tmp_path / "t.csv")
    result = run("ensemble", made / "m.plume", made / "fires.nc", *options)
    assert result.code == 0
    assert "county" not in result.err
    with (tmp_path / "t.csv").open() as file:
        assert [row["county"] for row in csv.DictReader(file)] == ["Siskiyou", ""]
    options = ("--points", made / "towns.csv", "--table", tmp_path / "c.csv")
    both = [f"{name}={made / 'fires.nc'}@{name}" for name in ("low", "high")]
    assert run("compare", *both, *options).code == 0
    with (tmp_path / "c.csv").open() as file:
        assert [row["county"] for row in csv.DictReader(file)][:2] == ["Siskiyou", ""]


def test_noise_is_zero_in_tables(made):
    surrogate = pc.load_surrogate(made / "m.plume")
    answer = pc.evaluate_points(surrogate, made / "fires.nc", made / "towns.csv")
    noisy = answer.assign(mean_smoke=answer["mean_smoke"].copy(data=[7e-9, 2.0 * NOISE]))
    assert point_columns(noisy)["mean"].tolist() == [0.0, 2.0 * NOISE]
    noisy["mean_smoke"].attrs["units"] = "kg m-3"  # where such a number is not noise
    assert point_columns(noisy)["mean"].tolist() == [7e-9, 2.0 * NOISE]


def test_towns_are_drawn_where_they_are(made, succeed, tmp_path):
    content, _ = map_content(made / "fires.nc", points=made / "towns.csv")
    grid, shown = content.grid, page_data(content)["places"][0]
    assert shown["x"] != grid.x[shown["column"]]
    assert abs(shown["x"] - grid.x[shown["column"]]) <= 0.5 * grid.dx
    succeed("map", made / "fires.nc", "--points", made / "towns.csv", "-o", tmp_path / "m.kmz")
    with zipfile.ZipFile(tmp_path / "m.kmz") as file:
        text = file.read("doc.kml").decode()
    assert "<coordinates>-120.236060,37.894150</coordinates>" in text
    assert "<name>Fire perimeter</name>" in text


@pytest.mark.parametrize("asked", [("-o", "s.nc"), ("--points", "towns.csv")])
@pytest.mark.parametrize("final", [(), ("--final",)])
def test_true_smoke_of_other_hours_is_refused(made, refused, run, tmp_path, asked, final):
    option, name = asked
    command = ("ensemble", made / "m.plume", made / "fires.nc", "--truth", made / "truth.nc")
    path = (tmp_path if option == "-o" else made) / name
    said = refused(*command, option, path, *final)
    assert "true smoke is known at 6 h and cannot correct fires at" in said
    assert "--hours 6" in said
    assert run(*command, option, path, *final, "--hours", "6").code == 0


def test_geotiffs_say_their_unit_and_where_there_is_no_data(made, succeed, tmp_path):
    one = made / "fires.nc"
    succeed("ensemble", made / "m.plume", one, "--final", "-o", tmp_path / "s.tif")
    succeed("predict", made / "m.plume", one, "-o", tmp_path / "p.tif")
    for path in (tmp_path / "s_mean_smoke.tif", next(tmp_path.glob("p_fire-00-low*.tif"))):
        with rasterio.open(path) as file:
            assert np.isnan(file.nodata)
            assert file.units[0].startswith("ug m-3")


def test_losses_of_plants_are_never_negative(tmp_path):
    pytest.importorskip("pvlib")
    # Panels that face away from a low sun gain from scattered light.
    plants = write_plants(
        tmp_path / "p.csv", "a,9000,9000,100,90,90", columns="name,x,y,megawatts,tilt,azimuth"
    )
    loss = pc.solar_loss(
        smoky(concentration=20.0), plants, ignition_time="2020-09-08T14:00",
        unrecorded=Unrecorded(latitude=39),
    )  # fmt: skip
    lost = [loss[name].values for name in loss.data_vars if "lost" in str(name)]
    assert min(float(np.nanmin(values)) for values in lost) >= 0.0
