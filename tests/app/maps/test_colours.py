"""Colour scales: levels keep values to the stated resolution, and 0 stays 0."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumecast.app.maps.colours import (
    FIRST,
    LAST,
    MISSING,
    NOTHING,
    amount_scale,
    difference_scale,
    even_scale,
    palette,
)

ROUNDING = 1e-9  # relative; of logarithms in double precision
SCALES = [amount_scale(300.0), difference_scale(40.0), even_scale(0.0, 24.0)]


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale.kind)
@given(share=st.floats(0.0, 1.0))
def test_a_level_has_the_value_to_the_stated_resolution(scale, share):
    value = scale.low + share * (scale.high - scale.low)
    shown = scale.values[scale.levels(np.array([value]))[0]]
    error = abs(shown - value) if scale.kind == "linear" else abs(shown / value - 1.0)
    assert value == 0.0 or error <= scale.resolution * (1.0 + 1e-6) + ROUNDING


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale.kind)
def test_every_level_is_the_nearest_of_its_own_value(scale):
    first = FIRST + 1 if scale.kind == "log" else FIRST  # level 1 of ratios is "below the scale"
    first = FIRST + 1 if scale.kind == "linear" else first  # that of 0 is nothing
    levels = np.arange(first, LAST + 1)
    np.testing.assert_array_equal(scale.levels(scale.values[levels]), levels)


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale.kind)
def test_nothing_and_missing_are_transparent(scale):
    levels = scale.levels(np.array([0.0, np.nan, np.inf]))
    assert levels.tolist() == [NOTHING, MISSING, MISSING]
    assert scale.rgba[levels][:, 3].tolist() == [0, 0, 0]
    assert (scale.rgba[FIRST : LAST + 1, 3] == 255).all()


def test_values_beyond_a_scale_get_its_ends_and_opposite_ones_mirrored_levels():
    amounts = amount_scale(100.0)
    assert amounts.levels(np.array([1e-9, 1e9])).tolist() == [FIRST, LAST]
    signed = difference_scale(1.0)
    assert signed.levels(np.array([-9.0, -1e-6, 9.0])).tolist() == [FIRST, NOTHING, LAST]
    sizes = np.array([0.002, 0.02, 0.14, 1.0])
    mirrored = signed.levels(sizes).astype(int) + signed.levels(-sizes)
    np.testing.assert_array_equal(mirrored, FIRST + LAST)


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale.kind)
def test_ticks_lie_on_the_bar_in_order(scale):
    places = [scale.position(tick) for tick in scale.ticks()]
    assert 2 <= len(places) <= 12
    assert places == sorted(places)
    assert places[0] >= 0.0
    assert places[-1] <= 1.0


def test_an_empty_field_still_has_a_scale():
    for scale in (amount_scale(0.0), difference_scale(0.0), even_scale(0.0, 0.0)):
        assert 0.0 <= scale.low < scale.high
        assert scale.ticks()


@pytest.mark.parametrize("name", ["amount", "share", "burning"])
def test_sequential_colours_darken_all_the_way(name):
    """Luminance alone tells more from less, whatever colours a reader can see."""
    luminance = palette(name, 254).astype(float) @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(luminance) <= 1.0).all()  # 1: colours are rounded to bytes
    assert luminance[0] - luminance[-1] > 150.0
