"""Further outputs of WRF runs: smoke of the lowest layer, and tracers with stated units."""

from __future__ import annotations

import numpy as np
import pytest

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.base.names import COLUMN, CP_DRY, LEVEL, LOWEST, P0, R_DRY
from plumecast.sources.wrf.options import DRY_AIR, SMOKE_FLOOR, WrfOptions, tracer_unit
from support.wrf_files import HOURS, NX, NY, NZ, air, expected_column, plume, write_run

TOLERANCE = 1e-5
"""Relative: the files and the computation are in float32."""

MOLAR_MASS = 28.010  # g/mol, carbon monoxide


def density() -> np.ndarray:
    """Air density p/(R T) of the files, kg m⁻³."""
    state = air()
    pressure = state["P"] + state["PB"]
    temperature = (state["T"] + 300) * (pressure / P0) ** (R_DRY / CP_DRY)
    return pressure / (R_DRY * temperature)


def lowest(mixing_ratio: np.ndarray) -> np.ndarray:
    """Concentration in the lowest layer, µg m⁻³, of a mixing ratio in g/kg."""
    return 1e6 * (mixing_ratio * density())[0]


def carbon_monoxide(seconds: float) -> np.ndarray:
    """Mole fraction in ppmv, in another place than the smoke."""
    field = np.zeros((NZ, NY, NX))
    field[1:, 1:3, 5:7] = 0.2 + 0.1 * seconds / 3600.0
    return field


def with_tracers(fields, seconds):
    fields["co"] = carbon_monoxide(seconds)
    fields["tr17_2"] = 1e6 * plume(seconds)  # µg/kg


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "fire", HOURS, edit=with_tracers)


def total(field) -> np.ndarray:
    """Σ field(t) over the frames up to the last snapshot, with the floor of the reader."""
    sums = sum(field(3600.0 * hour) for hour in HOURS)
    return np.where(sums < SMOKE_FLOOR, 0.0, sums)


def test_surface_smoke_is_the_sum_over_checkpoints_of_the_lowest_layer(run):
    fire = pc.read_wrf(run, WrfOptions(surface=True))
    expected = total(lambda seconds: lowest(plume(seconds)))
    np.testing.assert_allclose(fire.surface_smoke[-1], expected, rtol=TOLERANCE)
    assert float(fire.surface_smoke.max()) > 2.0 * float(fire.smoke.max())
    assert fire.surface_smoke.attrs["units"] == "ug m-3"
    assert fire.surface_smoke.attrs[LEVEL] == LOWEST
    assert fire.surface_smoke.attrs[INTERVAL] == fire.smoke.attrs[INTERVAL] == 1.0
    assert "sum over the checkpoints" in fire.surface_smoke.attrs["comment"]


def test_smoke_and_other_variables_do_not_depend_on_further_outputs(run):
    plain, both = (
        pc.read_wrf(run, WrfOptions(**more)) for more in ({}, {"surface": True, "tracers": "co"})
    )
    np.testing.assert_array_equal(both.smoke, plain.smoke)
    outputs = {"surface_smoke", "smoke_co", "surface_smoke_co"}
    assert set(both.data_vars) - set(plain.data_vars) == outputs


def test_tracers_are_converted_from_their_units(run):
    fire = pc.read_wrf(run, WrfOptions(tracers=["co", "tr17_2=ug/kg"], surface=True))
    np.testing.assert_allclose(fire.smoke_tr17_2, fire.smoke, rtol=TOLERANCE)
    np.testing.assert_allclose(fire.surface_smoke_tr17_2, fire.surface_smoke, rtol=TOLERANCE)
    expected = total(
        lambda seconds: expected_column(1e-3 * MOLAR_MASS / DRY_AIR * carbon_monoxide(seconds))
    )  # x ppmv = 1e-6 x M / M_air kg/kg = 1e-3 x M / M_air g/kg
    np.testing.assert_allclose(fire.smoke_co[-1], expected, rtol=TOLERANCE)
    assert fire.smoke_co.attrs[LEVEL] == COLUMN
    assert not fire.surface_smoke_co.any()


def test_a_molar_mass_that_is_stated_is_used(run):
    usual = pc.read_wrf(run, WrfOptions(tracers="co"))
    doubled = pc.read_wrf(run, WrfOptions(tracers="co=ppmv:56.02"))
    np.testing.assert_allclose(doubled.smoke_co, 2.0 * usual.smoke_co, rtol=TOLERANCE)


@pytest.mark.parametrize(
    ("tracers", "message"),
    [
        ("tr17_2", "the unit of tracer tr17_2 is unknown; state it"),
        ("tr17_2=ppb", "tracers='tr17_2=ppb': the unit is not supported"),
        ("tr17_2=ppmv", "tracers='tr17_2=ppmv': the unit is not supported"),
        ("co,co", "names 'co' twice"),
        ("co,", "'' is not the name of a variable"),
        ("fire_smoke", "fire_smoke is the smoke already"),
        ("nox=ug/kg", "nox"),
    ],
)
def test_tracers_that_cannot_be_read_are_named(run, tracers, message):
    with pytest.raises(pc.PlumecastError, match=message):
        pc.read_wrf(run, WrfOptions(tracers=tracers))


def test_a_label_that_contradicts_the_known_unit_is_refused():
    with pytest.raises(pc.PlumecastError, match="co is labelled 'ug/kg', not ppmv"):
        tracer_unit("co", "ug/kg", None)


def test_an_unwritten_tracer_is_refused(tmp_path):
    def unwritten(fields, seconds):
        fields["co"] = np.full((NZ, NY, NX), 9.96921e36)

    run = write_run(tmp_path / "fire", HOURS, edit=unwritten)
    with pytest.raises(pc.PlumecastError, match="values of co are unwritten"):
        pc.read_wrf(run, WrfOptions(tracers="co"))
