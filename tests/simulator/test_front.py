"""Arrival times against exact ellipses, Minkowski sums and symmetries."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import label, map_coordinates

from plumecast.base.errors import PlumecastError
from plumecast.physics.fuels import FUEL_CODES, Moisture
from plumecast.simulator.front import arrival_times, wind_steps
from plumecast.simulator.landscape import Landscape, synthetic_landscape
from plumecast.simulator.spread import eccentricity, head_spread_rate, spread_coefficients

DRY = Moisture(0.05, 0.06, 0.07, 0.60, 0.90)
DIRECTIONS = (0, 15, 30, 45, 110, 205, 320)


def flat(shape, fuel="GR2", cell=300.0):
    code = np.int16(FUEL_CODES[fuel])
    return Landscape(np.zeros(shape), np.full(shape, code, dtype=np.int16), cell)


def ellipse(fuel, wind, cell=300.0):
    """Head rate in cells per hour and eccentricity, from the spread model alone."""
    head = float(head_spread_rate(fuel, DRY, wind_10m=3.6 * wind, slope=0.0)) * 60 / cell
    c = spread_coefficients(fuel, DRY)
    midflame = min(float(c.wind_adjustment) * wind, float(c.wind_limit))
    return head, eccentricity(midflame)


def towards(degree, speed=1.0):
    return speed * math.cos(math.radians(degree)), speed * math.sin(math.radians(degree))


def burn(landscape, wind, ignition, until, **options):
    return arrival_times(
        landscape, DRY, [0.0], [wind[0]], [wind[1]], ignition=ignition, until_hours=until, **options
    )


def distance_reached(arrival, ignition, degree, hour):
    """Cells from the ignition to where the arrival time along a ray passes `hour`."""
    step = np.arange(0.5, max(arrival.shape), 0.1)
    dx, dy = towards(degree)
    finite = np.where(np.isfinite(arrival), arrival, 1e6)
    along = map_coordinates(
        finite, [ignition[0] + step * dy, ignition[1] + step * dx], order=1, mode="nearest"
    )
    beyond = int(np.argmax(along > hour))
    before = along[beyond - 1]
    return step[beyond - 1] + 0.1 * (hour - before) / (along[beyond] - before)


def support(fuel, winds, durations, angles, cell=300.0):
    """Support function of the burned set: the sum over winds of (c·n + √(a² n∥² + b² n⊥²)) Δt."""
    total = np.zeros(angles.size)
    for (u, v), hours in zip(winds, durations, strict=True):
        head, e = ellipse(fuel, math.hypot(u, v), cell)
        a, turned = head / (1 + e), angles - math.atan2(v, u)
        b = a * math.sqrt(1 - e * e)
        width = np.sqrt((a * np.cos(turned)) ** 2 + (b * np.sin(turned)) ** 2)
        total += hours * (a * e * np.cos(turned) + width)
    return total


def minkowski_set(shape, ignition, radius, angles):
    """Cells whose centre lies within the support function around the ignition."""
    rows, columns = np.indices(shape)
    inside = np.ones(shape, dtype=bool)
    for angle, reach in zip(angles, radius, strict=True):
        offset = (columns - ignition[1]) * np.cos(angle) + (rows - ignition[0]) * np.sin(angle)
        inside &= offset <= reach
    return inside


def test_calm_fire_is_a_circle():
    head, e = ellipse("GR2", 0.0)
    assert e == pytest.approx(0.0, abs=1e-6)
    arrival = burn(flat((101, 101)), (0.0, 0.0), (50, 50), until=45 / head)
    rows, columns = np.indices(arrival.shape)
    exact = np.hypot(rows - 50, columns - 50) / head
    reached = exact < 44.5 / head
    assert np.abs(arrival - exact)[reached].max() < 0.1 / head
    far = reached & (exact > 10 / head)
    np.testing.assert_allclose(arrival[far], exact[far], rtol=0.005)


@pytest.mark.parametrize(("wind", "tolerance"), [(6.0, 0.01), (12.0, 0.01), (20.0, 0.03)])
@pytest.mark.parametrize("degree", DIRECTIONS)
def test_steady_wind_makes_the_analytic_ellipse(wind, tolerance, degree):
    head, e = ellipse("GR2", wind)
    length = 120
    hour = length / head
    a = head / (1 + e)
    half = int(length * (0.5 * e + 0.55)) + 10
    ignition = tuple(half - round(0.5 * e * length * part) for part in towards(degree)[::-1])
    wait = 2 * (1 + e) / (1 - e) / head
    arrival = burn(flat((2 * half, 2 * half)), towards(degree, wind), ignition, until=hour + wait)

    area = np.count_nonzero(arrival <= hour)
    assert area == pytest.approx(math.pi * a * a * math.sqrt(1 - e * e) * hour**2, rel=tolerance)
    for turn in (0, 90, -90, 180):
        exact = length * (1 - e) / (1 - e * math.cos(math.radians(turn)))
        reached = distance_reached(arrival, ignition, degree + turn, hour)
        assert reached == pytest.approx(exact, rel=tolerance), f"{turn}° from the wind"


def test_arrival_times_converge_with_resolution():
    # the same 36 km of grass and wind towards 20° on cells of 300, 150 and 75 m
    errors = []
    for refine in (4, 8, 16):
        cell = 1200.0 / refine
        head, e = ellipse("GR2", 8.0, cell)
        n = 30 * refine + 1
        ignition = (10 * refine, 6 * refine)
        arrival = burn(
            flat((n, n), cell=cell), towards(20, 8.0), ignition, until=18 * refine / head
        )
        rows, columns = np.indices(arrival.shape)
        dy, dx = rows - ignition[0], columns - ignition[1]
        c, s = towards(20)
        exact = (np.hypot(dx, dy) - e * (c * dx + s * dy)) / (head * (1 - e))
        seen = np.isfinite(arrival) & (exact < 17 * refine / head)
        seen[np.hypot(dx, dy) < 3 * refine] = False
        errors.append(np.abs(arrival - exact)[seen].mean())
    assert errors[1] < errors[0] / 1.6
    assert errors[2] < errors[1] / 1.6


def test_fire_refracts_at_a_fuel_boundary_and_converges():
    # calm: grass below, shrub above; Fermat's principle gives the exact time by a 1-D search
    errors = []
    for refine in (1, 2, 4):
        n = 24 * refine
        ground = flat((n, n), "GR4", 1200.0 / refine)
        fuel = ground.fuel.copy()
        fuel[n // 2 :] = FUEL_CODES["SH5"]
        ground = Landscape(ground.elevation, fuel, ground.cell)
        slow, fast = (ellipse(name, 0.0, ground.cell)[0] for name in ("GR4", "SH5"))
        ignition = (n // 4, n // 2)
        arrival = burn(ground, (0.0, 0.0), ignition, until=n / min(slow, fast))
        target = (n - n // 6, n - n // 5)
        edge = n / 2 - 0.5
        cross = np.linspace(0, n, 4001)
        first = np.hypot(cross - ignition[1], edge - ignition[0]) / slow
        second = np.hypot(cross - target[1], edge - target[0]) / fast
        exact = (first + second).min()
        errors.append(abs(arrival[target] / exact - 1))
    assert errors[2] < 0.02
    assert errors[2] < errors[0]


@pytest.mark.parametrize(
    ("fuel", "speed"), [("GR2", 8.0), ("GS2", 8.0), ("TU5", 8.0), ("GR2", 12.0)]
)
def test_gusty_turning_wind_gives_the_minkowski_sum_of_all_ellipses(fuel, speed):
    rng = np.random.default_rng(0)
    hours = np.arange(0, 40.5, 0.5)
    gust = np.cumsum(rng.normal(size=(2, hours.size)), axis=1) * 0.1
    speeds = speed * (1 + 0.4 * np.sin(2 * math.pi * hours / 24)) * np.exp(0.3 * np.sin(gust[0]))
    degrees = 20 + 40 * np.sin(2 * math.pi * hours / 60) + 20 * np.sin(gust[1] * 9)
    u, v = np.array([towards(d, s) for d, s in zip(degrees, speeds, strict=True)]).T
    edges, winds = wind_steps(hours, u, v, 40.0)
    angles = np.linspace(0, 2 * math.pi, 720, endpoint=False)
    reach = support(fuel, winds, np.diff(edges), angles)
    low_x, low_y = -reach[360], -reach[540]
    shape = (int(reach[180] - low_y) + 12, int(reach[0] - low_x) + 12)
    ignition = (int(6 - low_y), int(6 - low_x))
    arrival = arrival_times(
        flat(shape, fuel), DRY, hours, u, v, ignition=ignition, until_hours=40.0
    )
    exact = minkowski_set(shape, ignition, reach, angles)
    burned = np.isfinite(arrival)
    assert burned.sum() == pytest.approx(exact.sum(), rel=0.02)
    assert (burned ^ exact).sum() < 0.04 * exact.sum()


def test_mirrored_and_turned_wind_mirror_and_turn_the_fire():
    east = burn(flat((81, 81)), (7.0, 3.0), (40, 40), until=12.0)
    close = {"rtol": 2e-3, "atol": 2e-3}
    for wind, undo in (
        ((-7.0, 3.0), lambda t: t[:, ::-1]),
        ((7.0, -3.0), lambda t: t[::-1]),
        ((3.0, 7.0), lambda t: t.T),
        ((-3.0, 7.0), lambda t: t[:, ::-1].T),
    ):
        other = undo(burn(flat((81, 81)), wind, (40, 40), until=12.0))
        both = np.isfinite(east) & np.isfinite(other)
        assert (np.isfinite(east) ^ np.isfinite(other)).sum() <= 2
        np.testing.assert_allclose(other[both], east[both], **close)


def test_fire_spreads_faster_uphill():
    # a plane that rises 0.3 to the east: the head covers R cos(slope) per minute on the map
    x = np.arange(161) * 300.0
    plane = Landscape(np.tile(0.3 * x, (81, 1)), np.full((81, 161), 122, dtype=np.int16), 300.0)
    head = (
        float(head_spread_rate("GS2", DRY, wind_10m=0.0, slope=0.3)) / math.hypot(1, 0.3) * 60 / 300
    )
    arrival = burn(plane, (0.0, 0.0), (40, 40), until=100 / head)
    reached = distance_reached(arrival, (40, 40), 0.0, 90 / head)
    assert reached == pytest.approx(90, rel=0.01)
    assert distance_reached(arrival, (40, 40), 180.0, 90 / head) < 60


def test_steering_turns_the_local_wind():
    ground = flat((81, 81))
    quarter = np.tile(np.array([[0, -1], [1, 0]], dtype=np.float32), (81, 81, 1, 1))
    steered = burn(ground, (8.0, 0.0), (40, 40), until=9.0, steering=quarter)
    north = burn(ground, (0.0, 8.0), (40, 40), until=9.0)
    np.testing.assert_allclose(steered, north, rtol=1e-5)
    calm = burn(ground, (8.0, 0.0), (40, 40), until=9.0, steering=0 * quarter)
    assert np.isfinite(calm).sum() < np.isfinite(north).sum() / 2


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), share=st.floats(0.4, 0.9))
def test_fire_reaches_just_the_burnable_cells_connected_to_the_ignition(seed, share):
    rng = np.random.default_rng(seed)
    fuel = np.where(rng.uniform(size=(24, 30)) < share, 102, 98).astype(np.int16)
    fuel[12, 15] = 102
    ground = Landscape(np.zeros((24, 30)), fuel, 300.0)
    arrival = burn(ground, (3.0, 1.0), (12, 15), until=1e5)
    parts, _ = label(fuel == 102)
    np.testing.assert_array_equal(np.isfinite(arrival), parts == parts[12, 15])
    assert arrival[12, 15] == 0.0
    assert (arrival[np.isfinite(arrival)] >= 0.0).all()


def test_neighbours_burn_within_the_slowest_crossing_of_each_other():
    # on real relief, whatever the wind: no cell waits longer than a backing fire on it would take
    ground = synthetic_landscape(3, shape=(60, 80))
    hours = np.arange(0, 48.5, 0.5)
    u, v = 6 * np.cos(hours / 7), 6 * np.sin(hours / 5)
    row, column = np.argwhere(ground.fuel == FUEL_CODES["TU3"])[20]
    arrival = arrival_times(
        ground, DRY, hours, u, v, ignition=(int(row), int(column)), until_hours=48.0
    )
    rate = spread_coefficients(ground.fuel, DRY).base_rate * 60 / 300
    both = np.isfinite(arrival[:, 1:]) & np.isfinite(arrival[:, :-1])
    late = arrival[:, 1:][both] - arrival[:, :-1][both]
    assert both.sum() > 50
    assert (late <= 3.0 / rate[:, 1:][both]).all()


def test_wind_is_linear_in_time_and_steps_are_short():
    edges, winds = wind_steps([0, 2, 3], [0, 4, 4], [1, 1, 1], 3.0)
    np.testing.assert_allclose(edges, [0, 0.5, 1, 1.5, 2, 3])
    np.testing.assert_allclose(winds[:, 0], [0.5, 1.5, 2.5, 3.5, 4])
    np.testing.assert_allclose(winds[:, 1], 1)
    edges, winds = wind_steps([5.0], [3.0], [2.0], 48.0)
    np.testing.assert_allclose(edges, [0, 48])
    np.testing.assert_allclose(winds, [[3, 2]])


SOAKED = Moisture(0.4, 0.4, 0.4, 3.0, 3.0)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"ignition": (5, 6)}, r"\(5, 6\) lies on NB8 \(98\)"),
        ({"ignition": (20, 0)}, r"outside the grid of 20 rows by 30 columns"),
        ({"ignition": []}, "ignition is empty"),
        ({"moisture": SOAKED}, "does not burn at this moisture"),
        ({"wind_hours": [0, 1]}, "series of one length"),
        ({"wind_hours": [1, 0], "wind_u": [3, 3], "wind_v": [0, 0]}, "must increase"),
        ({"until_hours": 0.0}, "until_hours=0"),
        ({"steering": np.zeros((3, 3, 2, 2), np.float32)}, "steering has shape"),
    ],
)
def test_bad_ignitions_and_winds_are_named(choices, message):
    ground = flat((20, 30))
    ground.fuel[5, 6] = FUEL_CODES["NB8"]
    usual = {"moisture": DRY, "wind_hours": [0], "wind_u": [3], "wind_v": [0], "ignition": (1, 1)}
    with pytest.raises(PlumecastError, match=message):
        arrival_times(ground, **{**usual, "until_hours": 3.0, **choices})


def test_ignition_in_the_corner_of_a_tiny_grid():
    arrival = burn(flat((3, 2)), (5.0, 5.0), (0, 0), until=50.0)
    assert np.isfinite(arrival).all()
    assert arrival[0, 0] == 0.0


def test_the_first_of_several_fires_arrives():
    """Arrival from several cells is the earliest of those from each (Fermat's principle).

    Where two fronts meet, second-order differences see a kink: at most 2 % of the cells differ, and
    those by less than the time that the slowest fire needs for a cell.
    """
    ground = flat((60, 80))
    wind = {"wind_hours": [0.0, 6.0], "wind_u": [3.0, 3.0], "wind_v": [0.0, 2.0]}
    wind |= {"until_hours": 6.0}
    cells = [(20, 20), (30, 28), (40, 20)]
    together = arrival_times(ground, DRY, **wind, ignition=cells)
    each = [arrival_times(ground, DRY, **wind, ignition=cell) for cell in cells]
    first = np.minimum.reduce(each)
    burned = np.isfinite(together) & np.isfinite(first)
    assert np.count_nonzero(np.isfinite(together) != np.isfinite(first)) < 0.02 * burned.sum()
    assert np.mean(np.abs(together[burned] - first[burned]) > 0.05) < 0.02
    assert burned.sum() > np.isfinite(each[0]).sum()


def test_a_fire_up_to_an_earlier_hour_is_its_beginning():
    ground = synthetic_landscape(3, (60, 80))
    cell = tuple(int(i) for i in np.argwhere(ground.burnable)[1500])
    wind = {"wind_hours": [0.0, 9.0], "wind_u": [6.0, -6.0], "wind_v": [1.0, 5.0], "ignition": cell}
    whole = arrival_times(ground, DRY, **wind, until_hours=9.0)
    begun = arrival_times(ground, DRY, **wind, until_hours=3.0, grown_until=9.0)
    np.testing.assert_array_equal(begun, np.where(whole <= 3.0, whole, np.inf))
