"""The settings of a surrogate, and the presets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from plumecast.base.errors import PlumecastError
from plumecast.base.values import check_count, check_fields, shown
from plumecast.operators.coded.fit import CodedSettings
from plumecast.operators.families import FAMILIES
from plumecast.operators.fields.lift import check_lift
from plumecast.operators.fields.targets import TARGETS, check_targets
from plumecast.operators.pca import Truncation
from plumecast.operators.spectral.fit import SpectralSettings

FRAMES = {
    "map": "fields stay on the map",
    "wind": "fields are rotated so that the wind of every snapshot blows the same way",
    "wind-stretch": "fields are rotated and scaled so that it also blows equally strongly",
    "auto": "rotated if winds differ between fires, unless out-of-fold errors favour the map",
}

PHYSICS = {
    "none": "no smoke of cheap physics among the channels",
    "column": "smoke that the weather of every fire carries, summed over the column",
    "layers": "the same, summed over three parts of the column",
    "calibrated": "as column, with its spread, rise and speed chosen on the training fires",
    "auto": "whichever has the smallest out-of-fold error, if fires have a weather each",
}

DEFAULT = CodedSettings()


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a surrogate: those that all families share, and those of its family."""

    own: Any = DEFAULT  # an instance of the family's settings class
    family: str = "coded"
    lift: tuple[str, ...] = ()  # fields; if empty, the coded family encodes the input itself
    products: tuple[str, ...] = ()  # scalars of the fire that multiply the fields
    age_bins: int = 3
    targets: tuple[str, ...] = ("smoke",)
    covariates: tuple[str, ...] = ()
    frame: str = "map"
    physics: str = "none"
    preset: str | None = None
    updatable: bool = False  # keep what new fires can be added to without a new fit

    def __post_init__(self) -> None:
        check_fields(self)
        if self.family not in FAMILIES:
            raise PlumecastError(
                f"family '{self.family}' is unknown; choose from {', '.join(FAMILIES)}"
            )
        if self.frame not in FRAMES:
            raise PlumecastError(
                f"frame '{self.frame}' is unknown; choose from {', '.join(FRAMES)}"
            )
        if self.physics not in PHYSICS:
            raise PlumecastError(
                f"physics '{self.physics}' is unknown; choose from {', '.join(PHYSICS)}"
            )
        if self.lift or self.products or self.family != "coded":
            check_lift(self.lift, self.products)
        check_targets(self.targets)
        check_count("age_bins", self.age_bins, most=1000)
        if self.updatable:
            self._check_updatable()

    def _check_updatable(self) -> None:
        what = ""
        if getattr(self.own, "correction", False):
            what = "a surrogate with a correction (preset 'thorough')"
        elif FAMILIES[self.family].update is None and not self.is_plain:
            what = f"family '{self.family}'" + (" with a lift" if self.family == "coded" else "")
        if what:
            raise PlumecastError(
                f"updatable={self.updatable}: {what} cannot take in new fires without a new fit; "
                "leave it out and train again when there are more fires, or choose the preset "
                "recommended"
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
        return asdict(shared.pop("own")) | shared


def own_choices(record: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in a saved record that its family and lift use, without the preset."""
    family = FAMILIES[record.get("family", "coded")]
    names = {item.name for item in fields(family.settings)}  # type: ignore[arg-type]
    plain = family.name == "coded" and not record.get("lift") and not record.get("covariates")
    if not plain:
        names |= {"lift", "products", "age_bins", "targets", "covariates", "frame", "physics"}
    return {name: record[name] for name in record if name in names | {"family"}}


def check_record(record: Mapping[str, Any]) -> None:
    """Raise if a saved record, which has a family, has settings that no fit could have had."""
    if "family" not in record:  # a baseline, or an operator of the user's own
        return
    if not isinstance(record["family"], str) or record["family"] not in FAMILIES:
        raise PlumecastError(
            f"family '{shown(record['family'])}' is unknown; choose from {', '.join(FAMILIES)}"
        )
    family = FAMILIES[record["family"]]
    own = {item.name: record[item.name] for item in fields(family.settings) if item.name in record}  # type: ignore[arg-type]
    for name in ("fire", "smoke"):
        if isinstance(own.get(name), Mapping):
            own[name] = Truncation(**own[name])
    shared = {item.name for item in fields(Settings)} - {"own"}
    Settings(family.settings(**own), **{name: record[name] for name in shared & set(record)})


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
    "targets": ("log", "smoke", "footprint"),
    "frame": "auto",
    "physics": "auto",
}

PRESETS = {
    "paper-linear": Settings(CodedSettings(degree=1, penalty=0.0), preset="paper-linear"),
    "paper-quadratic": Settings(
        CodedSettings(degree=2, fire=Truncation(std_fraction=0.95, max_rank=200)),
        preset="paper-quadratic",
    ),
    "quick": Settings(
        SpectralSettings(layers=2), preset="quick", **(_LIFTED | {"targets": ("log",)})
    ),
    "recommended": Settings(SpectralSettings(), preset="recommended", **_LIFTED),
    "thorough": Settings(
        SpectralSettings(correction=True),
        preset="thorough",
        age_bins=5,
        **(
            _LIFTED
            | {
                "lift": ("age-bins", "burned", "position"),
                "products": ("hours", "hours-squared", "day"),
            }
        ),
    ),
}
"""The paper's two operators, and three of the spectral family: `recommended`; `quick`, with two
layers that predict only ln(1 + g/ε); `thorough`, with more channels and a correction.

The paper's presets use the values printed there; the penalty of the quadratic operator is tuned.
The paper truncates the quadratic operator's 686 input modes (95 % of Σσ) to 200, because the number
of features grows with the square of the rank; data with fewer modes keeps them all.
"""


def choose_settings(preset: str | None = None, **given: Any) -> Settings:
    """A preset (or the defaults of a family) with single settings replaced.

    `given` are settings by name; None keeps the value. `fire` and `smoke` are dictionaries with one
    rule of a truncation each.
    """
    choices = {name: value for name, value in given.items() if value is not None}
    if preset is not None and preset not in PRESETS:
        raise PlumecastError(f"preset '{preset}' is unknown; choose from {', '.join(PRESETS)}")
    settings = _start(preset, choices.pop("family", None))
    changes = {name: _as_choice(settings, name, value) for name, value in choices.items()}
    changes = {name: value for name, value in changes.items() if value is not None}
    _refuse_misplaced(settings, changes)
    own_names = {item.name for item in fields(settings.own)}
    own = {name: changes.pop(name) for name in own_names & set(changes)}
    if {"degree", "kernel"} & {n for n, v in own.items() if v != getattr(settings.own, n)}:
        own.setdefault("penalty", None)  # the preset's penalty belongs to another degree or kernel
    if preset is not None and (own or changes):
        changes["preset"] = f"{preset}, changed"
    return replace(settings, own=replace(settings.own, **own), **changes)


def _start(preset: str | None, family: str | None) -> Settings:
    """The settings of a preset or family; families except coded start from "recommended"."""
    settings = Settings() if preset is None else PRESETS[preset]
    if family is None or family == settings.family:
        return settings
    if preset not in (None, "recommended"):
        raise PlumecastError(
            f"preset '{preset}' is of family '{settings.family}', not '{family}'; leave out the "
            "preset or the family"
        )
    if family == "coded" or family not in FAMILIES:
        return Settings(family=family)
    own = FAMILIES[family].settings()
    return replace(PRESETS["recommended"], own=own, family=family, preset=None, frame="map")


def _as_choice(settings: Settings, name: str, value: Any) -> Any:
    """A given value in the form that `Settings` stores; None if it changes nothing."""
    if name in ("fire", "smoke"):
        rule = {k: v for k, v in value.items() if v is not None}
        if not rule:
            return None
        before = getattr(settings.own, name, None)
        limit = None if "rank" in rule or before is None else before.max_rank
        return Truncation(**rule, max_rank=limit)
    if name in ("lift", "products", "targets", "covariates"):
        return (
            (value,) if isinstance(value, str) or not isinstance(value, Sequence) else tuple(value)
        )
    return value


def _refuse_misplaced(settings: Settings, changes: dict[str, Any]) -> None:
    """Raise for a setting that the family does not have."""
    if "degree" in changes and isinstance(settings.own, CodedSettings):
        settings.own.refuse_degree(changes["degree"], changes.get("kernel"))
    known = {item.name for item in (*fields(settings), *fields(settings.own))} - {"own", "preset"}
    lifted = settings.lift or changes.get("lift")
    for name in sorted(changes):
        if name not in known:
            raise PlumecastError(
                f"the {settings.family} family has no setting '{name}'; leave it out, or choose "
                "another preset or family"
            )
        if name in ("age_bins", "products") and not lifted:
            raise PlumecastError(
                f"'{name}' has no effect in a {settings.family} surrogate without a lift; leave it "
                "out or give a lift"
            )
