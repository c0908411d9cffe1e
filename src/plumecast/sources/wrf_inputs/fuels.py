"""Fuels of WRF-Fire: Anderson's 13 categories, `namelist.fire`, and the category of a fuel model.

WRF 4.3.3 knows the 13 fuels of Anderson (1982, INT-GTR-122) and 14 for ground that does not burn.
The numbers are those of the file `namelist.fire` that WRF is delivered with.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plumecast.compute.arrays import Array
from plumecast.sources.fuels.table import FUEL_CODES

NO_FUEL = 14

DEFAULT_CATEGORY = 10
"""Timber with litter and understory: the one fuel of a run whose fuels are not known."""

# The category whose spread rate in WRF is nearest to that of the fuel model: smallest mean of
# |ln ratio| at 0, 3 and 6 m/s of wind at 20 ft with dead fuel of 8 %. A category of the same kind
# (grass, shrub, timber, slash) is preferred if its rate is within a factor of 2. No category is as
# slow as SH1, SH2, TL1, TL2, TL3 and TL4: there category 8 spreads two and a half to eight times as
# fast.
_NEAREST = {
    1: "GR3 GR5",
    2: "GR2 GS3 GS4 SH4",
    3: "GR4 GR6 GR7 GR8",
    4: "GR9",
    5: "SH5 SH7 SH9",
    8: "SH1 SH2 SH3 TU1 TL1 TL2 TL3 TL4 TL5 TL6 TL7 TL8 SB1",
    9: "GR1 TU2 TU4 TU5 TL9",
    10: "SH8 TU3",
    11: "GS1 GS2 SH6 SB2 SB3",
    12: "SB4",
    NO_FUEL: "NB1 NB2 NB3 NB8 NB9",
}

CATEGORIES: dict[str, int] = {
    name: category for category, names in _NEAREST.items() for name in names.split()
}
"""Name of a Scott and Burgan fuel model → Anderson category."""


def anderson_categories(fuel: npt.NDArray[np.int16]) -> Array:
    """Categories of fuel codes, of any shape."""
    table = np.full(max(FUEL_CODES.values()) + 1, NO_FUEL)
    for name, category in CATEGORIES.items():
        table[FUEL_CODES[name]] = category
    return np.asarray(table[fuel])


def namelist_fire(moisture: float) -> str:
    """Text of `namelist.fire`: WRF's own fuels with this moisture of the ground fuel, a fraction.

    WRF 4.3.3 has one moisture for all dead fuel of a run.
    """
    columns = {
        name: values if isinstance(values, tuple) else (values,) * NO_FUEL
        for name, values in _FUELS.items()
    }
    lines = [f" {name} = {', '.join(f'{v:g}' for v in values)}" for name, values in columns.items()]
    names = ", ".join(f"'{number}'" for number in range(1, NO_FUEL + 1))
    return "\n".join(
        [
            "&fuel_scalars",
            " cmbcnst = 17.433e+06",
            " hfgl = 17.e4",
            f" fuelmc_g = {moisture:.4f}",
            " fuelmc_c = 1.00",
            f" nfuelcats = {NO_FUEL - 1}",
            f" no_fuel_cat = {NO_FUEL}",
            "/",
            "",
            "&fuel_categories",
            f" fuel_name = {names}",
            *lines,
            "/",
            "",
        ]
    )


_FUELS: dict[str, tuple[float, ...] | float] = {
    "windrf": (0.36, 0.36, 0.44, 0.55, 0.42, 0.44, 0.44, 0.36, 0.36, 0.36, 0.36, 0.43, 0.46, 1e-7),
    "fgi": (0.166, 0.897, 0.675, 2.468, 0.785, 1.345, 1.092, 1.121, 0.780, 2.694, 2.582, 7.749,
            13.024, 1e-7),
    "fueldepthm": (0.305, 0.305, 0.762, 1.829, 0.61, 0.762, 0.762, 0.061, 0.061, 0.305, 0.305,
                   0.701, 0.914, 0.305),
    "savr": (3500.0, 2784.0, 1500.0, 1739.0, 1683.0, 1564.0, 1562.0, 1889.0, 2484.0, 1764.0,
             1182.0, 1145.0, 1159.0, 3500.0),
    "fuelmce": (0.12, 0.15, 0.25, 0.20, 0.20, 0.25, 0.40, 0.30, 0.25, 0.25, 0.15, 0.20, 0.25,
                0.12),
    "fueldens": 32.0,
    "st": 0.0555,
    "se": 0.010,
    "weight": (7.0, 7.0, 7.0, 180.0, 100.0, 100.0, 100.0, 900.0, 900.0, 900.0, 900.0, 900.0, 900.0,
               7.0),
}  # fmt: skip
"""Wind reduction, load (kg m⁻²), depth (m), surface-area-to-volume ratio (ft⁻¹), moisture of
extinction, density (lb ft⁻³), minerals and burnout weight (s) of the 13 fuels and of none."""
