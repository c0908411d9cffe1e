"""Spread rates against an independent table and hand calculations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.physics.fuels import FUEL_CODES, Moisture, fuel_table
from plumecast.simulator.spread import (
    eccentricity,
    fire_ellipse,
    head_spread_rate,
    spread_coefficients,
)
from support.places import SHARED

REFERENCE = SHARED / "reference/surface_spread_rates.csv"
DRY = Moisture(0.05, 0.06, 0.07, 0.30, 0.60)
BURNABLE = [code for code in FUEL_CODES.values() if fuel_table().burnable[code]]


def head_rate(fuel, wind, slope, moisture=DRY):
    return head_spread_rate(fuel, moisture, wind_10m=wind, slope=slope)


@pytest.mark.skipif(not REFERENCE.exists(), reason=f"no reference table at {REFERENCE}")
def test_reference_rates_within_one_percent():
    table = np.genfromtxt(REFERENCE, delimiter=",", names=True)
    moistures = [table[name] for name in Moisture._fields]
    wind, slope = table["wind_10m_km_h"], table["slope_rise_over_run"]
    rate = head_spread_rate(table["fuel_model"], moistures, wind_10m=wind, slope=slope)
    assert len(table) == 360
    np.testing.assert_allclose(rate, table["spread_rate_m_min"], rtol=0.01)


def test_fully_cured_grass_by_the_single_category_equations():
    # GR2 at 30 % herb moisture: 0.1 + 1.0 ton/acre of dead grass, SAV 2000 and 1800 per ft, 1 ft.
    fine, cured = 0.1 * 2000 / 43560, 1.0 * 2000 / 43560
    area = fine * 2000 + cured * 1800
    sav = (fine * 2000**2 + cured * 1800**2) / area
    packing = (fine + cured) / 32.0
    relative = packing / (3.348 * sav**-0.8189)
    ratio = 0.05 / 0.15
    damping = 1 - 2.59 * ratio + 5.11 * ratio**2 - 3.52 * ratio**3
    a = 133 * sav**-0.7913
    velocity = sav**1.5 / (495 + 0.0594 * sav**1.5) * relative**a * math.exp(a * (1 - relative))
    intensity = velocity * (fine + cured) * (1 - 0.0555) * 8000 * damping * 0.174 * 0.01**-0.19
    flux = math.exp((0.792 + 0.681 * sav**0.5) * (packing + 0.1)) / (192 + 0.2595 * sav)
    heating = (fine * 2000 * math.exp(-138 / 2000) + cured * 1800 * math.exp(-138 / 1800)) / area
    expected = intensity * flux / ((fine + cured) * heating * (250 + 1116 * 0.05)) * 0.3048
    assert head_rate("GR2", 0.0, 0.0) == pytest.approx(expected, rel=1e-9)


def test_wind_and_slope_factors_by_hand():
    c = spread_coefficients("TL3", DRY)
    calm = head_rate("TL3", 0.0, 0.0)
    assert calm == pytest.approx(float(c.base_rate))
    # 0.3 ft deep: WAF = 1.83 / ln((20 + 0.108) / 0.039) = 0.2931, and 20 ft wind = 10 m wind / 1.15
    assert c.wind_adjustment == pytest.approx(0.2931 / 1.15, rel=1e-3)
    midflame = float(c.wind_adjustment) * 10 / 3.6
    factor = float(c.wind_coefficient) * midflame ** float(c.wind_exponent)
    assert head_rate("TL3", 10.0, 0.0) == pytest.approx(calm * (1 + factor))
    # packing ratio of TL3: 5.5 ton/acre on 0.3 ft of 32 lb/ft³ wood = 0.0263
    assert c.slope_coefficient == pytest.approx(5.275 * 0.0263 ** (-0.3), rel=1e-3)
    up = calm * (1 + float(c.slope_coefficient) * 0.2**2)
    assert head_rate("TL3", 0.0, 0.2) == pytest.approx(up)
    assert head_rate("TL3", 0.0, -0.2) == pytest.approx(up)


def test_wind_and_slope_that_oppose_each_other_slow_the_fire():
    together = head_rate("GS2", 8.0, 0.3)
    apart = head_rate("GS2", -8.0, 0.3)
    assert apart < head_rate("GS2", 8.0, 0.0) < together


def test_wind_limit_is_reached_and_kept():
    rate = head_rate("GR1", np.array([20.0, 60.0, 80.0, 120.0]), 0.0)
    assert rate[0] < rate[1] == rate[2] == rate[3]


def test_moisture_of_extinction_stops_the_fire():
    soaked = head_spread_rate(
        BURNABLE, Moisture(0.41, 0.41, 0.41, 3.0, 3.0), wind_10m=30.0, slope=0.2
    )
    np.testing.assert_array_equal(soaked, 0.0)
    assert (head_rate(BURNABLE, 0.0, 0.0) > 0).all()


def test_curing_of_herbs_between_30_and_120_percent():
    herb = np.array([0.1, 0.3, 0.75, 1.2, 1.5])
    rate = head_rate("GR4", 15.0, 0.0, Moisture(0.05, 0.06, 0.07, herb, 0.6))
    assert rate[0] == pytest.approx(rate[1])
    assert (np.diff(rate[1:]) < 0).all()


def test_drier_and_windier_is_faster_in_every_fuel():
    wet = head_rate(BURNABLE, 20.0, 0.1, Moisture(0.10, 0.11, 0.12, 0.9, 1.2))
    dry = head_rate(BURNABLE, 20.0, 0.1, Moisture(0.02, 0.03, 0.04, 0.3, 0.6))
    gale = head_spread_rate(
        BURNABLE, Moisture(0.02, 0.03, 0.04, 0.3, 0.6), wind_10m=40.0, slope=0.1
    )
    assert (dry > wet).all()
    assert (gale >= dry).all()


def test_arguments_broadcast_and_names_equal_codes():
    fuels = np.array([["GR2"], ["TU5"], ["NB8"]])
    rate = head_rate(fuels, np.array([0.0, 10.0, 20.0, 30.0]), 0.1)
    assert rate.shape == (3, 4)
    np.testing.assert_array_equal(rate[2], 0.0)
    again = head_rate(np.array([[102], [165], [98]]), [0.0, 10.0, 20.0, 30.0], 0.1)
    np.testing.assert_array_equal(rate, again)
    assert rate[1, 2] == pytest.approx(float(head_rate(165, 20.0, 0.1)))


def test_bad_values_are_named():
    with pytest.raises(PlumecastError, match="unknown fuel 100"):
        head_rate(100, 0.0, 0.0)
    with pytest.raises(PlumecastError, match=r"at least 0, got -0\.05"):
        head_rate(101, 0.0, 0.0, Moisture(-0.05, 0.1, 0.1, 0.5, 0.5))
    with pytest.raises(PlumecastError, match="finite"):
        head_rate(101, np.nan, 0.0)


def test_length_to_breadth_of_the_ellipse():
    assert eccentricity(0.0) == pytest.approx(0.0, abs=1e-7)
    # 3 m/s: LB = 0.936·2.1593 + 0.461·0.6285 − 0.397 = 1.9138
    assert eccentricity(3.0) == pytest.approx(math.sqrt(1 - 1.9138**-2), rel=1e-4)
    assert eccentricity(50.0) == pytest.approx(math.sqrt(1 - 1 / 64))


@settings(max_examples=50, deadline=None)
@given(
    angle=st.floats(0, 2 * math.pi),
    wind=st.tuples(st.floats(-8, 8), st.floats(-8, 8)),
    slope=st.tuples(st.floats(-0.6, 0.6), st.floats(-0.6, 0.6)),
)
def test_ellipse_turns_with_wind_and_slope(angle, wind, slope):
    def turned(v):
        c, s = math.cos(angle), math.sin(angle)
        return (c * v[0] - s * v[1], s * v[0] + c * v[1])

    fuel = np.array(spread_coefficients("GS2", DRY))
    rate, shape, x, y = fire_ellipse(fuel, wind, slope)
    rate_t, shape_t, x_t, y_t = fire_ellipse(fuel, turned(wind), turned(slope))
    assert rate_t == pytest.approx(rate, rel=1e-9)
    assert shape_t == pytest.approx(shape, abs=1e-6)
    if shape > 1e-3:
        assert (x_t, y_t) == pytest.approx(turned((x, y)), abs=1e-6)


def test_heading_lies_between_wind_and_slope():
    fuel = np.array(spread_coefficients("GS2", DRY))
    _, _, x, y = fire_ellipse(fuel, (1.0, 0.0), (0.0, 0.3))
    assert x > 0
    assert y > 0
    assert fire_ellipse(fuel, (0.0, 0.0), (0.0, 0.0))[1] == 0.0
