"""The registry of families, the settings of a surrogate, and the presets.

A new family is one file and one name in FAMILIES.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.values import check_count, check_fields, setting, shown
from plumecast.operators.carried.transport import CARRIED
from plumecast.operators.coded.fit import CODED, CodedSettings
from plumecast.operators.coded.kernels import POLYNOMIAL
from plumecast.operators.family import Family, FamilySettings
from plumecast.operators.lift import PARTS, PRODUCTS, check_lift
from plumecast.operators.neural.map import FNO, UNET
from plumecast.operators.pca import Truncation
from plumecast.operators.spectral.fit import SPECTRAL, SpectralSettings
from plumecast.operators.targets import BLENDED, TARGETS, check_targets

FAMILIES: dict[str, Family] = {one.name: one for one in (CODED, SPECTRAL, UNET, FNO)}

NETWORKS = tuple(name for name, family in FAMILIES.items() if family.extra == "neural")
"""Families of neural networks."""


FRAMES = {
    "map": "fields stay on the map",
    "wind": "fields are rotated so that the wind of every snapshot blows the same way",
    "wind-stretch": "fields are rotated and scaled so that it also blows equally strongly",
    "auto": "rotated if winds differ between fires, unless out-of-fold errors favour the map",
}

PHYSICS = {
    "none": "no smoke of cheap physics among the channels",
    **{name: kind.summary for name, kind in CARRIED.items()},
    "auto": "whichever has the smallest out-of-fold error, if fires have a weather each",
}

DEFAULT = CodedSettings()

SIDES, RULES = ("fire", "smoke"), ("rank", "std_fraction", "variance_fraction")
"""The truncations of the coded family, of inputs and outputs, and their rules: `fire_rank=…`."""

MAPS = ("degree", "kernel")
"""Settings whose change asks for another penalty."""

LISTED = {"lift", "products", "targets", "covariates"}
"""Settings that are names of several fields."""

LIFT_NAMES = {"lift", "products", "age_bins", "targets", "covariates", "frame", "physics"}
"""Settings without effect on the paper's operator."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a surrogate: those that all families share, and those of its family."""

    family_settings: Any = DEFAULT  # an instance of the family's settings class
    family: str = setting(
        "coded", f"Family of operators: {', '.join(FAMILIES)}.", default_text="the preset's"
    )
    lift: tuple[str, ...] = setting(  # if empty, the coded family encodes the input itself
        (), f"Fields made of the fire, separated by commas: {', '.join(PARTS)}."
    )
    products: tuple[str, ...] = setting(
        (), f"Scalars that multiply these fields: {', '.join(PRODUCTS)}."
    )
    age_bins: int = setting(3, "Number of bins of the time since ignition, for --lift age-bins.")
    targets: tuple[str, ...] = setting(("smoke",), f"Fields to fit: {', '.join(TARGETS)}.")
    covariates: tuple[str, ...] = setting(
        (), "Scalars of each snapshot to use as inputs, e.g. fuel_moisture,wind_speed."
    )
    frame: str = setting("map", f"Frame of the fields: {', '.join(FRAMES)}.")
    physics: str = setting(
        "none",
        f"Smoke carried by the weather of every fire, as channels: {', '.join(PHYSICS)}.",
    )
    preset: str | None = None
    updatable: bool = setting(
        False,
        "Keep what `plumecast update` adds new fires to; the file is several times as large.",
    )

    def __post_init__(self) -> None:
        check_fields(self)
        _check_name("family", self.family, FAMILIES)
        _check_name("frame", self.frame, FRAMES)
        _check_name("physics", self.physics, PHYSICS | CARRIED)
        if self.lift or self.products or self.family != "coded":
            check_lift(self.lift, self.products)
        check_targets(self.targets)
        check_count("age_bins", self.age_bins, most=1000)
        what = ""
        if getattr(self.family_settings, "correction", False):
            what = "a surrogate with a correction (preset 'thorough')"
        elif FAMILIES[self.family].update is None and not self.is_plain:
            what = f"family '{self.family}'" + (" with a lift" if self.family == "coded" else "")
        if self.updatable and what:
            raise ArgumentError(
                "updatable",
                self.updatable,
                f"{what} cannot take in new fires without a new fit; leave it out and train "
                "again when there are more fires, or choose the preset recommended",
            )

    @property
    def is_plain(self) -> bool:
        """Whether this is the paper's operator between codes of the fields themselves."""
        plain = self.targets == ("smoke",) and not self.lift and not self.covariates
        return plain and self.family == "coded" and (self.frame, self.physics) == ("map", "none")

    def record(self) -> dict[str, Any]:
        """All settings by name, as they are saved with a surrogate."""
        shared = {item.name: getattr(self, item.name) for item in fields(self)}
        if not self.updatable:
            del shared["updatable"]
        return asdict(shared.pop("family_settings")) | shared


def _check_name(what: str, name: Any, names: Iterable[str]) -> None:
    if not isinstance(name, str) or name not in names:
        raise PlumecastError(f"{what} '{shown(name)}' is unknown; choose from {', '.join(names)}")


def own_choices(record: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in a saved record that its family and lift use, without the preset."""
    family = FAMILIES[record.get("family", "coded")]
    names = {"family", *_names(family.settings)}
    if family.name != "coded" or record.get("lift") or record.get("covariates"):
        names |= LIFT_NAMES
    return {name: record[name] for name in record if name in names}


def recorded_choices(record: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The preset and the keywords of `choose_settings` that give recorded settings again."""
    preset = record.get("preset")
    if preset is not None and "," not in preset:
        return preset, {}
    choices = own_choices(record)
    if choices.get("kernel", POLYNOMIAL) != POLYNOMIAL:
        del choices["degree"]  # the terms of other kernels name their degrees
    for side in SIDES:
        rules = dict(choices.pop(side, None) or {})
        choices |= {f"{side}_{rule}": rules[rule] for rule in RULES if rules.get(rule) is not None}
    return None if preset is None else preset.split(",")[0], choices


def check_record(record: Mapping[str, Any]) -> None:
    """Raise if a saved record, which has a family, has settings that no fit could have had."""
    if "family" not in record:  # a baseline, or an operator of the user's own
        return
    _check_name("family", record["family"], FAMILIES)
    kind = FAMILIES[record["family"]].settings
    values = {name: record[name] for name in _names(kind) if name in record}
    for side in SIDES:
        if isinstance(values.get(side), Mapping):
            values[side] = Truncation(**values[side])
    shared = {name: record[name] for name in SHARED_NAMES if name in record}
    Settings(kind(**values), **shared)


def for_signed(settings: Settings, *, inputs: bool, outputs: bool) -> Settings:
    """The settings with a lift and targets that keep the sign of signed inputs and outputs."""
    targets, lift = settings.targets, settings.lift
    if outputs:
        targets = tuple(name for name in targets if TARGETS[name].signed) or ("smoke",)
    if inputs and "age-bins" in lift and "negative-bins" not in lift:
        lift = (*lift, "negative-bins")
    if (targets, lift) == (settings.targets, settings.lift):
        return settings
    preset = None if settings.preset is None else f"{settings.preset.split(',')[0]}, changed"
    return replace(settings, targets=targets, lift=lift, preset=preset)


_LIFTED: dict[str, Any] = {
    "family": "spectral",
    "lift": ("age-bins", "burned"),
    "products": ("hours",),
    "targets": BLENDED,
    "frame": "auto",
    "physics": "auto",
}

_THOROUGH = {
    "lift": ("age-bins", "burned", "position"),
    "products": ("hours", "hours-squared", "day"),
    "age_bins": 5,
}
_QUADRATIC = CodedSettings(degree=2, fire=Truncation(std_fraction=0.95, max_rank=200))

PRESETS = {
    name: Settings(family_settings, preset=name, **shared)
    for name, family_settings, shared in (
        ("paper-linear", CodedSettings(degree=1, penalty=0.0), {}),
        ("paper-quadratic", _QUADRATIC, {}),
        ("quick", SpectralSettings(layers=2), _LIFTED | {"targets": ("log",)}),
        ("recommended", SpectralSettings(), _LIFTED),
        ("thorough", SpectralSettings(correction=True), _LIFTED | _THOROUGH),
    )
}
"""The paper's two operators, and three of the spectral family: `recommended`; `quick`, with two
layers that predict only ln(1 + g/ε); `thorough`, with more channels and a correction.

The paper's presets use the values printed there; the penalty of the quadratic operator is tuned.
The paper truncates the quadratic operator's 686 input modes (95 % of Σσ) to 200, because the number
of features grows with the square of the rank; data with fewer modes keeps them all.
"""


def choose_settings(
    preset: str | None = None, settings: Settings | FamilySettings | None = None, **choices: Any
) -> Settings:
    """A preset, or complete settings, or the defaults of a family, with single settings replaced.

    `settings` are `Settings`, or those of one family such as `SpectralSettings(layers=2)`, which
    replace the family's part of the preset. `choices` are fields of `Settings` and of the family's
    class by name; None keeps the value. A rule of a truncation is named after its side:
    `fire_rank`, `smoke_std_fraction`.
    """
    wanted = {name: value for name, value in choices.items() if value is not None}
    if preset is not None:
        _check_name("preset", preset, PRESETS)
    start = _start(preset, settings, wanted.pop("family", None))
    rules = {side: _rule(start, side, wanted) for side in SIDES}
    changes = wanted
    for name in LISTED & wanted.keys():
        value = wanted[name]
        single = isinstance(value, str) or not isinstance(value, Sequence)
        changes[name] = (value,) if single else tuple(value)
    changes |= {side: rule for side, rule in rules.items() if rule is not None}
    _refuse_misplaced(start, changes)
    before = start.family_settings
    of_family = {name: changes.pop(name) for name in _names(type(before)) if name in changes}
    if any(of_family.get(n, getattr(before, n, None)) != getattr(before, n, None) for n in MAPS):
        of_family.setdefault("penalty", None)  # the preset's belongs to another degree or kernel
    changed = replace(start, family_settings=replace(before, **of_family), **changes)
    if preset is not None and (of_family or changes.keys() - {"updatable"} or settings):
        changed = replace(changed, preset=f"{preset}, changed")
    return changed


def _start(
    preset: str | None, settings: Settings | FamilySettings | None, family: str | None
) -> Settings:
    """Where the choices begin; families except coded start from "recommended"."""
    if isinstance(settings, Settings):
        if preset is not None or family not in (None, settings.family):
            raise PlumecastError("complete settings are given; leave out the preset and the family")
        return settings
    if settings is not None:
        names = [name for name, one in FAMILIES.items() if isinstance(settings, one.settings)]
        if not names or family not in (None, *names):
            raise PlumecastError(
                f"a {type(settings).__name__} is none of the settings of family "
                f"'{family or ', '.join(FAMILIES)}'"
            )
        return replace(_start(preset, None, family or names[0]), family_settings=settings)
    start = Settings() if preset is None else PRESETS[preset]
    if family is None or family == start.family:
        return start
    if preset not in (None, "recommended"):
        raise PlumecastError(
            f"preset '{preset}' is of family '{start.family}', not '{family}'; leave out the "
            "preset or the family"
        )
    if family == "coded" or family not in FAMILIES:
        return Settings(family=family)
    kind = FAMILIES[family].settings
    recommended = replace(PRESETS["recommended"], family_settings=kind(), family=family)
    return replace(recommended, preset=None, frame="map")


def _rule(settings: Settings, side: str, wanted: dict[str, Any]) -> Truncation | None:
    """The truncation of a side that choices such as `fire_rank` ask for, taken out of them."""
    names = [rule for rule in RULES if f"{side}_{rule}" in wanted]
    rule = {name: wanted.pop(f"{side}_{name}") for name in names}
    if not rule:
        whole: Truncation | None = wanted.pop(side, None)
        return whole
    before = getattr(settings.family_settings, side, None)
    limit = None if "rank" in rule or before is None else before.max_rank
    return Truncation(**rule, max_rank=limit)


def _refuse_misplaced(settings: Settings, changes: dict[str, Any]) -> None:
    """Raise for a setting that the family does not have."""
    kernel = changes.get("kernel") or getattr(settings.family_settings, "kernel", POLYNOMIAL)
    if "degree" in changes and kernel != POLYNOMIAL:
        degree = changes["degree"]
        advice = f"name it in the kernel instead, as in 'polynomial-{degree} + matern-5/2'"
        problem = f"belongs to kernel '{POLYNOMIAL}'"
        raise ArgumentError("degree", degree, advice, problem=problem)
    own, shared = _names(type(settings.family_settings)), SHARED_NAMES - {"preset"}
    lifted = settings.lift or changes.get("lift")
    for name in sorted(changes):
        if name not in {*own, *shared}:
            flat = [f"{side}_{rule}" for side in own for rule in RULES if side in SIDES]
            names = [*(one for one in own if one not in SIDES), *flat, *sorted(shared)]
            raise PlumecastError(
                f"the {settings.family} family has no setting '{name}'; it has "
                f"{', '.join(names)}; leave it out, or choose another preset or family"
            )
        if name in ("age_bins", "products") and not lifted:
            raise PlumecastError(
                f"'{name}' has no effect in a {settings.family} surrogate without a lift; leave it "
                "out or give a lift"
            )


def settings_classes() -> list[type]:
    """The classes whose fields are the settings of surrogates, each once."""
    own = dict.fromkeys(family.settings for family in FAMILIES.values())
    return [*list(own)[:1], Settings, *list(own)[1:]]


def _names(kind: Any) -> list[str]:
    return [item.name for item in fields(kind)]


SHARED_NAMES = frozenset(_names(Settings)) - {"family_settings"}
"""Settings of all families."""
