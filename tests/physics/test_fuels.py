"""The fuel table: published values, units, codes and names."""

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.physics.fuels import (
    FUEL_CODES,
    PARTICLE_CLASSES,
    flaming_residence_time,
    fuel_codes,
    fuel_name,
    fuel_table,
    mass_burnout_time,
)

HERBLESS_SHRUBS = {"SH2", "SH3", "SH4", "SH5", "SH6", "SH7", "SH8"}


def test_forty_fuels_burn_and_five_covers_do_not():
    table = fuel_table()
    assert table.burnable.sum() == 40
    assert table.listed.sum() == 45
    assert not table.burnable[[91, 92, 93, 98, 99]].any()
    assert not (table.burnable & ~table.listed).any()


def test_published_loads_in_metric_units():
    # GTR-153 prints short tons per acre; 1 ton/acre is 2.2417 Mg/ha = 0.22417 kg/m².
    table = fuel_table()
    np.testing.assert_allclose(table.load[102], [0.0224, 0, 0, 0.2242, 0], atol=5e-5)
    np.testing.assert_allclose(table.load[165], np.array([4, 4, 3, 0, 3]) * 0.224170, rtol=1e-5)
    assert table.depth[145] == pytest.approx(6 * 0.3048)
    assert table.sav[145, PARTICLE_CLASSES.index("dead_1h")] == pytest.approx(750 / 0.3048)
    assert table.extinction_moisture[164] == pytest.approx(0.12)


def test_only_gr6_has_the_higher_heat_content():
    heat = fuel_table().heat_content[fuel_table().burnable]
    assert fuel_table().heat_content[106] == pytest.approx(20.934e6)
    assert (np.isclose(heat, 18.608e6)).sum() == 39


def test_dynamic_fuels_are_those_with_live_herbs():
    dynamic = {name for name, code in FUEL_CODES.items() if fuel_table().dynamic[code]}
    grasses = {name for name in FUEL_CODES if name[:2] in {"GR", "GS"}}
    assert dynamic == grasses | {"SH1", "SH9", "TU1", "TU3"}
    assert not dynamic & HERBLESS_SHRUBS


def test_loads_add_up_and_every_loaded_class_has_a_surface():
    table = fuel_table()
    np.testing.assert_allclose(table.total_load, table.load.sum(axis=1))
    assert (table.sav[table.load > 0] > 0).all()


def test_burnout_by_hand():
    # An inch of wood (σ = 4/d = 48 ft⁻¹) flames for 8 minutes.
    assert flaming_residence_time(48.0) == pytest.approx(480.0)
    # Equal loads of 1 h (2000/ft) and 100 h (30/ft) fuel: the mean of 11.52 s and 768 s.
    time = mass_burnout_time([1, 0, 1, 0, 0], [2000, 109, 30, 0, 0])
    assert time == pytest.approx((11.52 + 768.0) / 2)


def test_heavier_fuels_burn_longer():
    burnout = {name: fuel_table().burnout_time[code] for name, code in FUEL_CODES.items()}
    assert burnout["GR2"] < burnout["GS2"] < burnout["SH7"] < burnout["TL3"] < burnout["SB1"]
    assert 8 < burnout["GR2"] < 20
    assert 300 < burnout["TL3"] < 1100


def test_names_and_codes_are_two_spellings_of_one_fuel():
    np.testing.assert_array_equal(
        fuel_codes([["GR2", "NB8"], ["TU5", "SB4"]]), [[102, 98], [165, 204]]
    )
    assert fuel_codes("GR2") == fuel_codes(102) == fuel_codes(102.0)
    for name, code in FUEL_CODES.items():
        assert fuel_name(code) == name


@pytest.mark.parametrize("bad", [0, 100, 110, -9999, 32767, 102.5, "GR10", ["GR1", "grass"]])
def test_an_unknown_fuel_raises_with_the_list_of_known_fuels(bad):
    with pytest.raises(PlumecastError, match="unknown fuel") as error:
        fuel_codes(bad)
    assert str(bad[-1] if isinstance(bad, list) else bad) in str(error.value)
    assert "GR1–GR9 (101–109)" in str(error.value)


def test_table_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        fuel_table().depth[102] = 2.0
