"""`plumecast impact`: tables, files and refusals."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

pytest.importorskip("pvlib")

import plumecast as pc
from plumecast.data.store import export_snapshots
from plumecast.impact.solar_loss import Unrecorded
from support.plants import NOON, smoky, write_plants

SUN = ("--ignition-time", NOON, "--latitude", 39)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export_snapshots(smoky(fires=12), "fires.nc")
    write_plants(tmp_path / "plants.csv")
    return tmp_path


def impact(*more):
    return ("impact", "fires.nc", "--points", "plants.csv", *more)


def test_table_and_json_hold_what_python_computes(files, succeed):
    out = succeed(*impact("-o", "loss.csv", "--json", "loss.json", *SUN))
    loss = pc.solar_loss(
        "fires.nc", "plants.csv", ignition_time=NOON, unrecorded=Unrecorded(latitude=39.0)
    )
    with Path("loss.csv").open(newline="") as file:
        rows = {row["plant"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["a", "b", "all plants"]
    for name, row in rows.items():
        assert float(row["lost_mwh"]) == pytest.approx(float(loss.lost_energy.sel(row=name)), 1e-5)
        assert row["lost_mwh_lower_surrogate"] == "", "smoke that is stored has no such error"
    record = json.loads((files / "loss.json").read_text())
    assert record["plants"][0]["lost_mwh"] == pytest.approx(float(loss.lost_energy[0]))
    assert record["assumptions"]["optics_mee_range"] == [3.3, 7.4]
    assert "mean of 12 fires (6 ignitions)" in out
    assert "simplified_solis" in out
    assert "column of 15 km" in out


def test_a_surrogate_predicts_the_smoke(files, run):
    surrogate = pc.fit_surrogate(smoky(fires=12), "paper-linear")
    surrogate.save("smoke.plume")
    done = run(*impact("-o", "loss.nc", "--model", "smoke.plume", *SUN))
    assert done.code == 0, done.err
    assert "the error of the predicted smoke is not part of the interval" in done.err
    assert "of the ignitions are those of training" in done.err
    exact = pc.solar_loss(
        "fires.nc",
        "plants.csv",
        surrogate=surrogate,
        ignition_time=NOON,
        unrecorded=Unrecorded(latitude=39.0),
    )
    with xr.open_dataset("loss.nc") as loss:
        np.testing.assert_allclose(loss.lost_energy, exact.lost_energy, rtol=1e-6)
        assert loss.fire_lost_energy.dims == ("fire", "plant")
        assert loss.fire_lost_energy.attrs["units"] == "MW h"


def test_night_is_said(files, succeed, run):
    export_snapshots(smoky(fires=4, checkpoints=1), "evening.nc")
    done = run(
        "impact", "evening.nc", "--points", "plants.csv", "-o", "loss.csv",
        "--ignition-time", "2020-12-08T18:00", "--latitude", 39,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "a: no sun in these hours, so that it loses 0 of 0 MWh" in done.err
    assert "nan" not in done.out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "--ignition-time is missing: the sun needs the time of ignition; state 2020-"),
        (("--ignition-time", "noon"), "--ignition-time='noon' is not a date and time"),
        (("--ignition-time", "2020-09-08"), "--ignition-time='2020-09-08' has no hour"),
        (("--ignition-time", NOON), "--latitude is missing"),
        (("--ignition-time", NOON, "--latitude", 99), "--latitude=99 must lie within"),
        ((*SUN, "--column-depth", 15), "--column-depth=15 must be in m"),
        ((*SUN, "--mee", 2), "--mee=2 lies outside its range, 3.3,7.4"),
        ((*SUN, "--mee-range", "7,3"), "--mee-range=[7.0, 3.0] is not a range"),
        ((*SUN, "--coverage", 90), "--coverage=90 is not within (0, 1)"),
        ((*SUN, "--format", "farsite"), "expected one store with smoke"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(files, refused, given, message):
    assert message in refused(*impact("-o", "loss.csv", *given))
    assert not (files / "loss.csv").exists()
