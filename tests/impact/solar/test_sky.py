"""Irradiance under smoke against published figures, and the table against the model."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pvlib")

from plumecast.impact.loss import aod_nodes
from plumecast.impact.optics import (
    Air,
    Optics,
    optical_depth,
    spectrl2,
    tabulate,
)

ZENITH = 30.0  # a high sun, as in the published figures
PUBLISHED = 0.02  # the figures are for a sun, water and ground that are not stated
INTERPOLATION = 0.2  # W m⁻²; the docstring of SkyTable promises it


def sky(aod, ssa=0.93, zenith=ZENITH, model=spectrl2):
    """Beam and global irradiance, W m⁻²."""
    one = np.ones(1)
    beam, diffuse = model(zenith * one, aod * one, ssa * one, Optics(), Air())
    return float(beam[0]), float(beam[0] * np.cos(np.radians(zenith)) + diffuse[0])


@pytest.mark.parametrize(("ssa", "share"), [(0.93, 0.86), (0.85, 0.79), (0.98, 0.89)])
def test_global_irradiance_at_an_optical_depth_of_one(ssa, share):
    clear = sky(Optics().background, ssa)[1]
    assert sky(1.0, ssa)[1] / clear == pytest.approx(share, abs=PUBLISHED)


def test_beam_above_150_mg_of_smoke():
    background = Optics().background
    smoke = float(optical_depth(np.array(10.0), 15_000.0))  # 150 mg m⁻²
    reduced = 1.0 - sky(background + smoke)[0] / sky(background)[0]
    assert reduced == pytest.approx(0.42, abs=PUBLISHED)


@pytest.mark.parametrize("zenith", [0.0, 40.0, 75.0])
def test_spectrl2_decreases_with_the_optical_depth(zenith):
    aods = np.linspace(0.05, 5.0, 40)
    beam, diffuse = spectrl2(np.full(40, zenith), aods, np.full(40, 0.93), Optics(), Air())
    total = beam * np.cos(np.radians(zenith)) + diffuse
    assert (np.diff(beam) < 0.0).all()
    assert (np.diff(total) < 0.0).all()


def test_the_table_is_the_model():
    optics, pressures = Optics(), np.array([78_000.0, 101_325.0])
    aods, ssas = aod_nodes(optics.background, 6.0), np.array([0.88, 0.97])
    table = tabulate("spectrl2", aods, ssas, pressures, optics, Air())
    zenith = np.array([3.0, 33.0, 52.5, 71.0, 80.2, 86.1])
    for pressure in pressures:
        beam, diffuse = table.at(zenith, np.full(zenith.size, pressure))
        above = np.cos(np.radians(zenith))
        for i, j in ((0, 0), (9, 1), (20, 0)):
            exact = spectrl2(
                zenith, np.full(6, aods[i]), np.full(6, ssas[j]), optics, Air(pressure=pressure)
            )
            np.testing.assert_allclose(
                beam[:, i, j] * above + diffuse[:, i, j], exact[0] * above + exact[1],
                atol=INTERPOLATION,
            )  # fmt: skip
