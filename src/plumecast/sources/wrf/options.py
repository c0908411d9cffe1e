"""Options of reading WRF-Fire runs, and the units of smoke variables and tracers.

Units are stated by the user or known from WRF's source code; they are never guessed. A tracer in
ppmv (a mole fraction) has its molar mass beside the unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.values import setting
from plumecast.compute import regrid

SMOKE_FLOOR = 1e-3
"""Cumulative smoke below this value, µg m⁻³, is numerical diffusion and is set to 0."""

_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}

SMOKE_VARIABLES = {
    "fire_smoke": ("g/kg", ()),
    "tr17_1": ("ug/kg", ("dimensionless",)),
    "PM2_5_DRY": ("ug/m3", ()),
}
"""Unit of each known smoke variable, and labels in files that are compatible with it."""

AMBIGUOUS = {
    "smoke": "WRF-Chem's tracer_opt=1 fills it with carbon monoxide in ppmv, HRRR-Smoke with "
    "particles in ug/kg",
}
"""Variables whose unit depends on the model that wrote them, with the reason."""

MOLE_FRACTIONS = {"co": 28.010}
"""Molar mass, g mol⁻¹, of the tracers that WRF-Chem's registry has in ppmv."""

DRY_AIR = 28.9647  # g mol⁻¹

MICROGRAMS = {"kg": 1e9, "g": 1e6, "mg": 1e3, "ug": 1.0}
_UNIT = re.compile(r"([kmu]?g)(?:_\w+?)?\s*/?\s*(?:(kg)(?:\^?-1)?(?:[_-][a-z_]+)?|m\^?-?3)")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrfOptions:
    """How WRF-Fire runs are read.

    - `smoke` is the smoke variable, `smoke_unit` its unit if its name does not imply it.
    - `every` ("6h", "30min" or a number of hours) keeps the frames at its multiples after the first
      frame; the sum runs over the kept frames.
    - `domain` defaults to the domain with the finest fire grid.
    - `aggregate` makes smoke cells of fire cells by "mean" or "max".
    - Cumulative smoke below `floor` µg m⁻³ is set to 0.
    - With `surface`, `surface_smoke` is the same sum of the smoke in the lowest model layer.
    - `tracers` are further variables, each with its unit unless WRF's source code has it:
      "tr17_2=ug/kg,co", or "x=ppmv:30.01" with the molar mass in g/mol. Each gives the sum of its
      column means, `smoke_NAME`, with `surface` also `surface_smoke_NAME`, in µg m⁻³.
    """

    smoke: str = setting("fire_smoke", "The smoke variable.")
    smoke_unit: str | None = setting(
        None, "Unit of the smoke variable, e.g. g/kg or ug/m3, if its name does not imply it."
    )
    every: str | float | None = setting(
        None, "Interval between the checkpoints to keep, e.g. 6h.", default_text="keep all"
    )
    domain: int | str | None = setting(
        None, "WRF domain, e.g. d02.", default_text="the one with the finest fire grid"
    )
    aggregate: str = setting("mean", "How fire cells become smoke cells: mean or max.")
    floor: float = setting(SMOKE_FLOOR, "Smoke below this value (µg m⁻³) is stored as zero.")
    surface: bool = setting(False, "Also write surface_smoke, that of the lowest model layer.")
    tracers: str | Sequence[str] = setting(
        "",
        "Further variables to write as smoke_NAME, with units: tr17_2=ug/kg,no=ppmv:30.01 (molar "
        "mass in g/mol); known units, such as that of co, may be left out.",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "tracers", tracer_list(self.tracers))  # as stores record them
        if self.aggregate not in regrid.AGGREGATES:
            raise PlumecastError(regrid.unknown_aggregate(self.aggregate))
        if not self.floor >= 0.0:
            raise ArgumentError("floor", self.floor, "must be ≥ 0 µg m⁻³")
        if self.smoke_unit is not None:
            smoke_unit(self.smoke, "", self.smoke_unit)
        for name, unit in self.tracer_units.items():
            if name == self.smoke:
                raise ArgumentError("tracers", self.tracers, f"{name} is the smoke already")
            if unit is not None:
                tracer_unit(name, "", unit)
        interval_seconds(self.every)

    @property
    def tracer_units(self) -> dict[str, str | None]:
        """The tracers with their stated units; None where it is not stated."""
        pairs = [part.partition("=") for part in str(self.tracers).split(",") if part]
        return {name.strip(): unit.strip() if equals else None for name, equals, unit in pairs}


def interval_seconds(every: str | float | None) -> float | None:
    """Seconds of "6h", "30min", "1d" or a number of hours.

    >>> interval_seconds("30min"), interval_seconds(6)
    (1800.0, 21600.0)
    """
    if every is None:
        return None
    interval = re.fullmatch(r"\s*(\d+\.?\d*)\s*(s|min|h|d)?\s*", str(every))
    if not interval or float(interval[1]) <= 0:
        advice = 'no interval; give e.g. "6h", "30min", "1d" or a number of hours'
        raise ArgumentError("every", every, advice)
    return float(interval[1]) * _SECONDS[interval[2] or "h"]


def known_unit(label: str) -> str | None:
    """ "g_smoke/kg_air" → "g/kg", "ug m^-3" → "ug/m3"; None for any other kind of unit."""
    unit = _UNIT.fullmatch(label.strip().lower().replace("µ", "u").replace("μ", "u"))
    return f"{unit[1]}/{unit[2] or 'm3'}" if unit else None


def smoke_unit(name: str, label: str, user_unit: str | None) -> str:
    """The stated unit, or the known one if the label in the file does not contradict it."""
    if user_unit is not None:
        unit = known_unit(user_unit)
        if unit is None:
            advice = "not supported; give e.g. g/kg, ug/kg or ug/m3"
            raise ArgumentError("smoke_unit", user_unit, advice)
        return unit
    if name not in SMOKE_VARIABLES:
        units = ", ".join(f"{key} {value[0]}" for key, value in SMOKE_VARIABLES.items())
        why = AMBIGUOUS.get(name, f"known: {units}")
        raise PlumecastError(f"the unit of {name} is unknown; state smoke_unit ({why})")
    unit, labels = SMOKE_VARIABLES[name]
    if label and known_unit(label) != unit and label.lower() not in labels:
        raise PlumecastError(f"{name} is labelled {label!r}, not {unit}; state smoke_unit")
    return unit


def micrograms(unit: str) -> tuple[float, str]:
    """Factor to µg per kg of air or per m³, and which of the two ("kg" or "m3").

    x ppmv of molar mass M is 1000 x M / M_air µg kg⁻¹.

    >>> micrograms("g/kg"), micrograms("mg/m3")
    ((1000000.0, 'kg'), (1000.0, 'm3'))
    """
    if unit.startswith("ppmv:"):
        return 1e3 * float(unit.removeprefix("ppmv:")) / DRY_AIR, "kg"
    mass, per = unit.split("/")
    return MICROGRAMS[mass], per


def tracer_list(tracers: str | Sequence[str]) -> str:
    """Tracers as one text, "co,tr17_2=ug/kg"; raises for one without a name or given twice."""
    text = tracers if isinstance(tracers, str) else ",".join(tracers)
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    names = [part.partition("=")[0].strip() for part in parts]
    for name in names:
        if not name.isidentifier():
            advice = f"{name!r} is not the name of a variable; give e.g. tr17_2=ug/kg,co"
            raise ArgumentError("tracers", text, advice)
        if names.count(name) > 1:
            raise ArgumentError("tracers", text, f"it names '{name}' twice; give it once")
    return ",".join(parts)


def tracer_unit(name: str, label: str, user_unit: str | None) -> str:
    """`smoke_unit` of a tracer; "ppmv:28.01" for a mole fraction of that molar mass."""
    if user_unit is not None:
        mole_fraction = re.fullmatch(r"ppmv?:(\d+(?:\.\d+)?)", user_unit.strip().lower())
        if mole_fraction and float(mole_fraction[1]) > 0.0:
            return f"ppmv:{mole_fraction[1]}"
        if unit := known_unit(user_unit):
            return unit
        advice = (
            f"the unit is not supported; give e.g. {name}=ug/kg, {name}=ug/m3, or "
            f"{name}=ppmv:28.01 with the molar mass in g/mol"
        )
        raise ArgumentError("tracers", f"{name}={user_unit}", advice)
    if name in SMOKE_VARIABLES:
        return smoke_unit(name, label, None)
    if name not in MOLE_FRACTIONS:
        raise PlumecastError(
            f"the unit of tracer {name} is unknown; state it, e.g. tracers={name}=ug/kg, or "
            f"{name}=ppmv:28.01 with the molar mass in g/mol"
        )
    if label and label.lower() not in ("ppmv", "ppm"):
        raise PlumecastError(f"{name} is labelled {label!r}, not ppmv; state its unit")
    return f"ppmv:{MOLE_FRACTIONS[name]}"
