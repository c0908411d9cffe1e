"""Fuels: the 40 fuel models of Scott and Burgan, and ground that does not burn.

Source of the numbers: J. H. Scott and R. E. Burgan (2005), Standard fire behavior fuel models,
RMRS-GTR-153, table 7. Loads are published in US tons per acre, surface-area-to-volume ratios in
ft⁻¹, depth in ft and moisture of extinction in percent; `fuel_table` returns SI units. Heat
content is 8,000 BTU/lb, for GR6 9,000 BTU/lb.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Field, Mask

Codes: TypeAlias = npt.NDArray[np.int16]
"""Fuel codes, one per cell."""

KG_M2_PER_TON_ACRE = 907.18474 / 4046.8564224
"""One US ton per acre in kg m⁻² (2,000 lb of 0.45359237 kg on an international acre)."""

M_PER_FT = 0.3048
J_KG_PER_BTU_LB = 2326.0
"""One BTU (International Table) per pound in J kg⁻¹, exact."""

PARTICLE_CLASSES = ("dead_1h", "dead_10h", "dead_100h", "live_herb", "live_woody")
SAV_10H_PER_FT = 109.0
SAV_100H_PER_FT = 30.0

NB9 = 99
"""Code of bare ground, commonly used where there is no fuel model."""

# name code | load, ton/acre: 1h 10h 100h herb woody | SAV, 1/ft: 1h herb woody | depth ft | Mx %
_PUBLISHED = """
GR1 101  0.10 0.00  0.00 0.30 0.00  2200 2000    0  0.4 15
GR2 102  0.10 0.00  0.00 1.00 0.00  2000 1800    0  1.0 15
GR3 103  0.10 0.40  0.00 1.50 0.00  1500 1300    0  2.0 30
GR4 104  0.25 0.00  0.00 1.90 0.00  2000 1800    0  2.0 15
GR5 105  0.40 0.00  0.00 2.50 0.00  1800 1600    0  1.5 40
GR6 106  0.10 0.00  0.00 3.40 0.00  2200 2000    0  1.5 40
GR7 107  1.00 0.00  0.00 5.40 0.00  2000 1800    0  3.0 15
GR8 108  0.50 1.00  0.00 7.30 0.00  1500 1300    0  4.0 30
GR9 109  1.00 1.00  0.00 9.00 0.00  1800 1600    0  5.0 40
GS1 121  0.20 0.00  0.00 0.50 0.65  2000 1800 1800  0.9 15
GS2 122  0.50 0.50  0.00 0.60 1.00  2000 1800 1800  1.5 15
GS3 123  0.30 0.25  0.00 1.45 1.25  1800 1600 1600  1.8 40
GS4 124  1.90 0.30  0.10 3.40 7.10  1800 1600 1600  2.1 40
SH1 141  0.25 0.25  0.00 0.15 1.30  2000 1800 1600  1.0 15
SH2 142  1.35 2.40  0.75 0.00 3.85  2000    0 1600  1.0 15
SH3 143  0.45 3.00  0.00 0.00 6.20  1600    0 1400  2.4 40
SH4 144  0.85 1.15  0.20 0.00 2.55  2000 1800 1600  3.0 30
SH5 145  3.60 2.10  0.00 0.00 2.90   750    0 1600  6.0 15
SH6 146  2.90 1.45  0.00 0.00 1.40   750    0 1600  2.0 30
SH7 147  3.50 5.30  2.20 0.00 3.40   750    0 1600  6.0 15
SH8 148  2.05 3.40  0.85 0.00 4.35   750    0 1600  3.0 40
SH9 149  4.50 2.45  0.00 1.55 7.00   750 1800 1500  4.4 40
TU1 161  0.20 0.90  1.50 0.20 0.90  2000 1800 1600  0.6 20
TU2 162  0.95 1.80  1.25 0.00 0.20  2000    0 1600  1.0 30
TU3 163  1.10 0.15  0.25 0.65 1.10  1800 1600 1400  1.3 30
TU4 164  4.50 0.00  0.00 0.00 2.00  2300    0 2000  0.5 12
TU5 165  4.00 4.00  3.00 0.00 3.00  1500    0  750  1.0 25
TL1 181  1.00 2.20  3.60 0.00 0.00  2000    0    0  0.2 30
TL2 182  1.40 2.30  2.20 0.00 0.00  2000    0    0  0.2 25
TL3 183  0.50 2.20  2.80 0.00 0.00  2000    0    0  0.3 20
TL4 184  0.50 1.50  4.20 0.00 0.00  2000    0    0  0.4 25
TL5 185  1.15 2.50  4.40 0.00 0.00  2000    0 1600  0.6 25
TL6 186  2.40 1.20  1.20 0.00 0.00  2000    0    0  0.3 25
TL7 187  0.30 1.40  8.10 0.00 0.00  2000    0    0  0.4 25
TL8 188  5.80 1.40  1.10 0.00 0.00  1800    0    0  0.3 35
TL9 189  6.65 3.30  4.15 0.00 0.00  1800    0 1600  0.6 35
SB1 201  1.50 3.00 11.00 0.00 0.00  2000    0    0  1.0 25
SB2 202  4.50 4.25  4.00 0.00 0.00  2000    0    0  1.0 25
SB3 203  5.50 2.75  3.00 0.00 0.00  2000    0    0  1.2 25
SB4 204  5.25 3.50  5.25 0.00 0.00  2000    0    0  2.7 25
"""

# urban, snow or ice, agriculture, open water, bare ground
_NON_BURNABLE = {"NB1": 91, "NB2": 92, "NB3": 93, "NB8": 98, "NB9": NB9}

FUEL_CODES: dict[str, int] = _NON_BURNABLE | {
    line.split()[0]: int(line.split()[1]) for line in _PUBLISHED.strip().splitlines()
}
"""Name → numeric code of every known fuel, e.g. "GR2" → 102."""

_FUEL_NAMES = {code: name for name, code in FUEL_CODES.items()}
_TABLE_LENGTH = 256


class Moisture(NamedTuple):
    """Moisture of the five particle classes, as fractions of the oven-dry mass."""

    dead_1h: float
    dead_10h: float
    dead_100h: float
    live_herb: float
    live_woody: float


@dataclass(frozen=True, slots=True)
class FuelTable:
    """Fuel properties indexed by fuel code: `table.depth[102]` is the depth of GR2.

    Rows of unknown and non-burnable codes are 0. The classes are `PARTICLE_CLASSES`.
    """

    listed: Mask  # (256,) codes of fuels and non-burnable covers
    burnable: Mask  # (256,)
    dynamic: Mask  # (256,) live herbs turn into dead fuel as they cure
    load: Field  # (256, 5) oven-dry load of each class, kg m⁻²
    sav: Field  # (256, 5) surface-area-to-volume ratio of each class, m⁻¹
    depth: Field  # (256,) fuel bed depth, m
    extinction_moisture: Field  # (256,) of dead fuel, fraction
    heat_content: Field  # (256,) low heat content, J kg⁻¹
    total_load: Field  # (256,) all five classes, kg m⁻²
    burnout_time: Field  # (256,) e-folding time of the fuel mass, s


@cache
def fuel_table() -> FuelTable:
    """Properties of the 40 fuels and five non-burnable covers; read-only arrays."""
    rows = [line.split() for line in _PUBLISHED.strip().splitlines()]
    code = np.array([int(row[1]) for row in rows])
    numbers = np.array([[float(value) for value in row[2:]] for row in rows])
    sav_per_ft = np.empty((code.size, 5))
    sav_per_ft[:, [0, 3, 4]] = numbers[:, 5:8]
    sav_per_ft[:, [1, 2]] = SAV_10H_PER_FT, SAV_100H_PER_FT
    btu_per_lb = np.where(code == FUEL_CODES["GR6"], 9000.0, 8000.0)
    load = numbers[:, :5] * KG_M2_PER_TON_ACRE
    listed = np.zeros(_TABLE_LENGTH, dtype=bool)
    listed[list(FUEL_CODES.values())] = True
    return FuelTable(
        listed=_read_only(listed),
        burnable=_by_code(code, np.ones(code.size, dtype=bool)),
        dynamic=_by_code(code, load[:, 3] > 0.0),
        load=_by_code(code, load),
        sav=_by_code(code, sav_per_ft / M_PER_FT),
        depth=_by_code(code, numbers[:, 8] * M_PER_FT),
        extinction_moisture=_by_code(code, numbers[:, 9] / 100.0),
        heat_content=_by_code(code, btu_per_lb * J_KG_PER_BTU_LB),
        total_load=_by_code(code, load.sum(axis=1)),
        burnout_time=_by_code(code, mass_burnout_time(load, sav_per_ft)),
    )


def flaming_residence_time(sav_per_ft: npt.ArrayLike) -> Field:
    """t = 384 / σ min, returned in s; σ in ft⁻¹ (Anderson 1969, INT-RP-69: 8 min per inch)."""
    return 60.0 * 384.0 / np.asarray(sav_per_ft, dtype=float)


def mass_burnout_time(load: npt.ArrayLike, sav_per_ft: npt.ArrayLike) -> Field:
    """Load-weighted mean over the classes of Anderson's 384 / σ minutes, in s; (…, 5) arrays.

    It is the e-folding time T of the fuel mass behind the front, m(t) = m₀ exp(−t/T), as in
    WRF-Fire. The times in WRF-Fire's tables are similar: 8 s for grass, 117–211 s for shrubs and
    1,057 s for timber (weight / 0.8514 with weights 7, 100–180 and 900).
    """
    load = np.asarray(load, dtype=float)
    sav = np.asarray(sav_per_ft, dtype=float)
    per_class = flaming_residence_time(np.where(sav > 0.0, sav, np.inf))
    return np.asarray((load * per_class).sum(axis=-1) / load.sum(axis=-1))


def fuel_codes(fuel_model: Any) -> Codes:
    """Codes or names of any shape → int16 codes; raises for an unknown code or name."""
    models = np.asarray(fuel_model)
    if models.dtype.kind in "UO":
        named = [FUEL_CODES.get(str(name)) for name in models.flat]
        unknown = {str(name) for name, code in zip(models.flat, named, strict=True) if code is None}
        if unknown:
            raise _unknown_fuels(sorted(unknown))
        return np.array(named, dtype=np.int16).reshape(models.shape)
    in_range = (models >= 0) & (models < _TABLE_LENGTH)
    valid = in_range & fuel_table().listed[np.where(in_range, models, 0).astype(np.intp)]
    if models.dtype.kind == "f":
        valid &= models == np.floor(models)
    if not valid.all():
        raise _unknown_fuels([f"{code:g}" for code in np.unique(models[~valid])])
    return models.astype(np.int16)


def fuel_name(code: int) -> str:
    """Name of a fuel code: 102 → "GR2"."""
    return _FUEL_NAMES[int(fuel_codes(code))]


def _unknown_fuels(unknown: list[str]) -> PlumecastError:
    some = ", ".join(unknown[:8]) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
    return PlumecastError(
        f"unknown fuel {some}; known are the Scott and Burgan fuels GR1–GR9 (101–109), GS1–GS4 "
        "(121–124), SH1–SH9 (141–149), TU1–TU5 (161–165), TL1–TL9 (181–189), SB1–SB4 (201–204) and "
        "the non-burnable NB1 (91), NB2 (92), NB3 (93), NB8 (98), NB9 (99)"
    )


def _by_code(code: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Read-only table over all codes; rows without values are 0."""
    table = np.zeros((_TABLE_LENGTH, *values.shape[1:]), dtype=values.dtype)
    table[code] = values
    return _read_only(table)


def _read_only(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    values.setflags(write=False)
    return values
