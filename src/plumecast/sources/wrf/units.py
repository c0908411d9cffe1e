"""Unit of a smoke variable: stated by the user or known from WRF's source code; never guessed."""

from __future__ import annotations

import re

from plumecast.base.errors import PlumecastError

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

MICROGRAMS = {"kg": 1e9, "g": 1e6, "mg": 1e3, "ug": 1.0}
_UNIT = re.compile(r"([kmu]?g)(?:_\w+?)?\s*/?\s*(?:(kg)(?:\^?-1)?(?:[_-][a-z_]+)?|m\^?-?3)")


def known_unit(label: str) -> str | None:
    """ "g_smoke/kg_air" → "g/kg", "ug m^-3" → "ug/m3"; None for any other kind of unit."""
    found = _UNIT.fullmatch(label.strip().lower().replace("µ", "u").replace("μ", "u"))
    return f"{found[1]}/{found[2] or 'm3'}" if found else None


def smoke_unit(name: str, label: str, stated: str | None) -> str:
    """The stated unit, or the known one if the label in the file does not contradict it."""
    if stated is not None:
        unit = known_unit(stated)
        if unit is None:
            raise PlumecastError(
                f"smoke_unit={stated!r} is not supported; give e.g. g/kg, ug/kg or ug/m3"
            )
        return unit
    if name not in SMOKE_VARIABLES:
        known = ", ".join(f"{key} {value[0]}" for key, value in SMOKE_VARIABLES.items())
        why = AMBIGUOUS.get(name, f"known: {known}")
        raise PlumecastError(f"the unit of {name} is unknown; state smoke_unit ({why})")
    unit, labels = SMOKE_VARIABLES[name]
    if label and known_unit(label) != unit and label.lower() not in labels:
        raise PlumecastError(f"{name} is labelled {label!r}, not {unit}; state smoke_unit")
    return unit
