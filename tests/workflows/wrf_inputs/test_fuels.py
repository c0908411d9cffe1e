"""Fuels and terrain of WRF-Fire: categories of all fuel models, and the order of the files."""

from __future__ import annotations

import numpy as np

from plumecast.physics.fuels import FUEL_CODES, fuel_table
from plumecast.workflows.wrf_domain import (
    CATEGORIES,
    NO_FUEL,
    RIM,
    Domain,
    anderson_categories,
    input_fc,
    input_ht,
    namelist_fire,
    rimmed_terrain,
)


def test_every_fuel_model_has_a_category_and_only_bare_ground_has_none():
    codes = np.array(list(FUEL_CODES.values()), dtype=np.int16)
    assert set(CATEGORIES) == set(FUEL_CODES)
    categories = anderson_categories(codes)
    assert ((categories >= 1) & (categories <= NO_FUEL)).all()
    np.testing.assert_array_equal(categories == NO_FUEL, ~fuel_table().burnable[codes])


def test_namelist_fire_has_the_moisture_and_all_categories():
    text = namelist_fire(0.0634)
    values = dict(line.split(" = ") for line in text.splitlines() if " = " in line)
    assert float(values[" fuelmc_g"]) == 0.0634
    for name in ("windrf", "fgi", "fueldepthm", "savr", "fuelmce", "fueldens", "st", "se"):
        assert len(values[f" {name}"].split(",")) == NO_FUEL


def read(text):
    """Values [y, x] of a file that WRF reads line by line along x."""
    sizes, *lines = text.splitlines()
    nx, ny = (int(size) for size in sizes.split())
    values = np.array([[float(value) for value in line.split()] for line in lines])
    assert values.shape == (nx, ny)
    return values.T


def test_fuels_come_back_with_the_cells_of_one_more_column():
    domain = Domain(nx=3, ny=2, dx=1000.0, refinement=4, corner=(0.0, 0.0))
    categories = np.arange(8 * 12).reshape(8, 12) % 14 + 1
    values = read(input_fc(categories, domain))
    assert values.shape == (3 * 4, 4 * 4)
    np.testing.assert_array_equal(values[:8, :12], categories)


def test_terrain_comes_back_above_its_lowest_ground():
    rows, columns = np.mgrid[0:20, 0:30]
    elevation = 1500.0 + 10.0 * rows + columns
    values = read(input_ht(rimmed_terrain(elevation)))
    assert values.shape == (21, 31)
    inner = (slice(RIM, 20 - RIM), slice(RIM, 30 - RIM))
    np.testing.assert_allclose(values[inner], (elevation - 1500.0)[inner])
    rim = rimmed_terrain(elevation)
    assert not rim[[0, -1]].any()
    assert not rim[:, [0, -1]].any()
    assert (rim <= elevation - 1500.0).all()
