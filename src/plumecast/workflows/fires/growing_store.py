"""A store that fires are added to while they are read, and the outcome of each fire.

All its fires have in common whether they have winds, a weather, which smoke scheme and which fuel
map. Its weather has one axis of hours, 0 to a whole number of days. The weather of a shorter fire
is continued by its last hour, which no snapshot of it uses. A longer fire extends the axis: the
store is written again, in one commit. A fuel map is kept while all fires have the same one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import Finding, read_findings, write_findings
from plumecast.base.names import SNAPSHOT, TABLE, WEATHER_HOUR, WIND
from plumecast.compute.arrays import Array
from plumecast.data.covariates import FUEL_LOAD
from plumecast.data.findings import QUALITY, check_fires, duplicate_run
from plumecast.data.rewrite import (
    NewLabels,
    drop_variable,
    relabel_fires,
    replace_fires,
    rewrite_fires,
)
from plumecast.data.split import find_duplicates, group_rows
from plumecast.data.store import (
    append_fire,
    check_store_path,
    open_if_stored,
    open_snapshots,
    stored_fires,
)
from plumecast.sources.wrf.checks import SMOKE_SCHEME
from plumecast.sources.wrf.profile import SURFACE_ONLY
from plumecast.weather.series import is_hourly
from plumecast.weather.snapshots import STATE_WEATHER, has_weather, pad_weather, without_weather
from plumecast.workflows.fires.conditions import with_user_weather

SETTINGS = "settings"
"""Attribute of the data set that a reader returns: the reader's settings, as JSON."""

_LATER: dict[str, Any] = {"surface": False, "tracers": ""}
"""Settings that stores of earlier versions do not record, with the values they were read with."""

_COMPARED = ("fire_id", "ignition_id", "hours", "burned_area", "time_since_ignition")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one fire: read, already stored, or failed with a reason."""

    fire_id: str
    snapshots: int = 0
    hours: float = 0.0  # of the last snapshot
    acres: float = 0.0  # largest burned area
    quality: tuple[str, ...] = ()  # findings of the checks
    problem: str | None = None
    stored: bool = False  # was in the store before
    relabelled: bool = False  # and got new labels
    other_labels: tuple[str, ...] = ()  # stored labels that differ from those given
    other_settings: tuple[str, ...] = ()  # settings of the store that differ from those given
    has_wind: bool = True  # False: it was read, and its wind is unknown
    has_weather: bool = True  # False: it was read, and it has no hourly weather
    default_profile: bool = False  # only its 10 m wind is known, aloft the default profile is used
    weather_left_out: bool = False  # its files have a weather, but the store was made without

    @property
    def state(self) -> str:
        """The outcome in one word."""
        if self.problem:
            return "failed"
        return "relabelled" if self.relabelled else "skipped" if self.stored else "read"


class GrowingStore:
    """A store to append to; all its fires must have been read with the same settings."""

    def __init__(
        self, path: Path, fields: Sequence[str], weather: xr.Dataset | None = None
    ) -> None:
        check_store_path(path)
        self.path, self.fields, self.weather = path, fields, weather
        self.fire_ids = stored_fires(path)
        self.settings: str | None = None
        self.agreement = Agreement(path, weather)
        if self.fire_ids:
            stored = open_snapshots(path, fields=fields)
            self.settings = stored.attrs.get(SETTINGS)
            self.agreement.learn(stored)
            if self.settings is None:
                raise PlumecastError(f"{path} holds fires from another source; choose another path")

    def append(self, fires: xr.Dataset, findings: tuple[Finding, ...] = ()) -> list[Outcome]:
        """Append fires in one commit; return the outcome of each fire."""
        problem = None
        left_out = self.weather is None and self.agreement.leaves_out_weather(fires)
        try:
            self.settings = self.settings or fires.attrs[SETTINGS]
            for changed in _differences(
                json.loads(self.settings), json.loads(fires.attrs[SETTINGS])
            ):
                raise PlumecastError(
                    f"{self.path} was read with {changed}; repeat those settings to continue it, "
                    "read all its fires again to replace them, or choose another path"
                )
            fires = self.agreement.added(fires)
            append_fire(self.path, fires, fields=self.fields)
            self.agreement.learn(fires)
        except PlumecastError as error:
            problem = str(error)
        parts = (fires.isel({SNAPSHOT: rows}) for rows in group_rows(fires.fire_id.values))
        return [_outcome(part, findings, problem, left_out) for part in parts]

    def append_checked(self, fire: xr.Dataset, findings: tuple[Finding, ...]) -> list[Outcome]:
        """Check a fire and append it; a copy of a stored fire joins the ignition of that fire."""
        return self.append(*_checked(fire, findings, open_if_stored(self.path, self.fields)))

    def replace(
        self, fires: Iterator[tuple[xr.Dataset, tuple[Finding, ...]]], *, whole: bool
    ) -> list[Outcome]:
        """Read fires again and replace the stored ones, in one commit; `whole` if all are."""
        outcomes: list[Outcome] = []
        before, settings = json.loads(self.settings or "null"), ""

        def checked() -> Iterator[xr.Dataset]:
            nonlocal settings
            for fire, findings in fires:
                settings = fire.attrs[SETTINGS]
                now, all_findings = _checked(
                    self.agreement.replaced(fire, whole=whole), findings, None
                )
                outcomes.append(_outcome(now, all_findings))
                yield now

        def check_kept(kept: frozenset[str]) -> None:
            changed = _differences(before or {}, json.loads(settings))
            if kept and changed:
                raise PlumecastError(
                    f"{self.path} also holds {', '.join(sorted(kept)[:5])}, read with "
                    f"{changed[0]}; give all its fires to replace them"
                )

        if not self.fire_ids:
            for fire, findings in fires:
                outcomes += self.append_checked(fire, findings)
            return outcomes
        try:
            replace_fires(self.path, checked(), check_kept=check_kept, fields=self.fields)
            self.agreement.finish()
        except PlumecastError as error:
            return [replace(outcome, problem=str(error)) for outcome in outcomes]
        return outcomes

    def already_stored(
        self, names: Sequence[str], labels: NewLabels, options: Mapping[str, Any], relabel: bool
    ) -> list[Outcome]:
        """The outcomes of fires that need no reading, with what differs from what was asked for.

        With `relabel`, labels that differ are changed in the store, in one commit.
        """
        stored_names = sorted(self.fire_ids.intersection(names))
        if not stored_names:
            return []
        stored = open_snapshots(self.path, fields=self.fields)
        of_fire = stored.fire_id.values.astype(str)
        row = {fire: number for number, fire in enumerate(of_fire)}
        hours, acres = stored.hours.values, stored.burned_area.values
        settings = tuple(_differences(json.loads(self.settings or "{}"), options))
        changes: dict[str, dict[str, str]] = {}
        outcomes = []
        for fire in stored_names:
            one, texts = stored.isel({SNAPSHOT: row[fire]}), []
            quality = read_findings(str(one[QUALITY].values)) if QUALITY in stored.variables else ()
            copy = any(item.check == "duplicate run" for item in quality)
            for name, by_fire in labels.items():
                now = str(one[name].values)
                wanted = by_fire.get(fire, now)
                # The ignition of a copy of another fire was set when it was read.
                if wanted != now and not (copy and name == "ignition_id"):
                    texts.append(f"{name} '{now}', not '{wanted}'")
                    changes.setdefault(name, {})[fire] = wanted
            outcomes.append(
                Outcome(
                    fire,
                    snapshots=int(np.count_nonzero(of_fire == fire)),
                    hours=float(hours[of_fire == fire].max()),
                    acres=float(acres[of_fire == fire].max()),
                    stored=True,
                    relabelled=relabel and bool(texts),
                    other_labels=() if relabel else tuple(texts),
                    other_settings=settings,
                )
            )
        if relabel and changes:
            relabel_fires(self.path, changes)
        return outcomes


def _differences(before: dict[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The settings that differ, as text; a unit that was not given was taken from the files."""
    recorded = _LATER | before
    return [
        f"{name}={recorded.get(name)}, not {value}"
        for name, value in now.items()
        if recorded.get(name) != value and not (name == "smoke_unit" and value is None)
    ]


def _checked(
    fire: xr.Dataset, findings: tuple[Finding, ...], stored: xr.Dataset | None
) -> tuple[xr.Dataset, tuple[Finding, ...]]:
    """A fire with the findings of its fields and its copies in the store as a coordinate.

    The checks run before the store refuses a fire, so that NaN is a problem and not a finding.
    """
    name = str(fire.fire_id.values[0])
    checks = {item.check for item in findings}
    findings += tuple(item for item in check_fires(fire)[name] if item.check not in checks)
    copies = _copies(fire, stored) if stored is not None else {}
    if copies:
        ignition = next(iter(copies.values()))
        findings += (duplicate_run(set(copies)),)
        labels = np.full(fire.sizes[SNAPSHOT], ignition)
        fire = fire.assign_coords(ignition_id=(SNAPSHOT, labels, fire.ignition_id.attrs))
    values = np.full(fire.sizes[SNAPSHOT], write_findings(findings))
    labelled = fire.assign_coords({QUALITY: (SNAPSHOT, values, TABLE[QUALITY].attrs)})
    labelled.attrs.pop(QUALITY, None)  # attributes are shared by all fires of a store
    return labelled, findings


def _copies(fire: xr.Dataset, stored: xr.Dataset) -> dict[str, str]:
    """The stored fires that are the same run as `fire`, with their ignitions."""
    if fire.sizes["y"] != stored.sizes["y"] or fire.sizes["x"] != stored.sizes["x"]:
        return {}
    keys = set(zip(fire.hours.values.tolist(), fire.burned_area.values.tolist(), strict=True))
    pairs = zip(stored.hours.values.tolist(), stored.burned_area.values.tolist(), strict=True)
    names = stored.fire_id.values.astype(str)
    alike = {names[row] for row, pair in enumerate(pairs) if pair in keys}
    if not alike:
        return {}
    rows = np.flatnonzero(np.isin(names, sorted(alike)))
    both = xr.concat(
        [part.reset_coords()[list(_COMPARED)].drop_vars(["x", "y"], errors="ignore").load()
         for part in (stored.isel({SNAPSHOT: rows}), fire)],
        SNAPSHOT, combine_attrs="override",
    )  # fmt: skip
    name = str(fire.fire_id.values[0])
    ignitions = dict(zip(both.fire_id.values, both.ignition_id.values, strict=True))
    groups = [set(group) for group in find_duplicates(both) if name in group]
    return {other: str(ignitions[other]) for group in groups for other in sorted(group - {name})}


def _outcome(
    fire: xr.Dataset,
    findings: tuple[Finding, ...],
    problem: str | None = None,
    left_out: bool = False,
) -> Outcome:
    return Outcome(
        fire_id=str(fire.fire_id.values[0]),
        snapshots=int(fire.sizes[SNAPSHOT]),
        hours=float(fire.hours.max()),
        acres=float(fire.burned_area.max()),
        quality=tuple(map(str, findings)),
        problem=problem,
        has_wind=has_wind(fire),
        has_weather=has_weather(fire),
        default_profile=has_weather(fire) and fire.attrs.get("weather_kind") == SURFACE_ONLY,
        weather_left_out=left_out,
    )


DAY = 24.0
"""The hours of a store's weather are a multiple of this, so that longer fires seldom extend it."""


@dataclass(slots=True)
class Agreement:
    """What the stored fires have; None where there are no fires yet."""

    path: Path
    weather: xr.Dataset | None  # that replaces the weather of all fires
    has_wind: bool | None = None
    weather_hours: float | None = None  # last hour of the stored weather; 0 without weather
    scheme: int | None = None
    fuel: Array | None = None  # (y, x), or None if the store has no map
    mixed_fuel: bool = False  # fires that replaced others have another map

    def learn(self, stored: xr.Dataset) -> None:
        """Take over what stored fires have."""
        self.has_wind = has_wind(stored)
        self.weather_hours = _last_hour(stored)
        self.scheme = _scheme(stored)
        self.fuel = _fuel(stored)

    def added(self, fires: xr.Dataset) -> xr.Dataset:
        """The fires as they are appended; raises where they do not agree with the stored ones."""
        fires = with_user_weather(fires, self.weather)
        if self.has_wind is not None:
            if self.has_wind != has_wind(fires):
                fire = _first(fires)
                raise PlumecastError(
                    f"the fires in {self.path} have a wind, but that of fire '{fire}' is unknown; "
                    f"{STATE_WEATHER}"
                    if self.has_wind
                    else f"{self.path} was made without the wind of its fires, but fire '{fire}' "
                    "has a wind; read all fires again into a new store"
                )
            fires = self._as_stored(fires)
        hours = self.weather_hours
        if has_weather(fires):
            longest = max(_whole_days(fires), hours or 0.0)
            if hours and longest > hours:
                rewrite_fires(
                    self.path,
                    lambda stored: pad_weather(stored, longest),
                    message=f"extend the weather to {longest:g} h",
                )
            fires = pad_weather(fires, longest)
        if self.has_wind is not None and self._fuel_differs(fires):
            if self.fuel is not None:
                drop_variable(self.path, FUEL_LOAD)
            fires = fires.drop_vars(FUEL_LOAD, errors="ignore")
        return fires

    def replaced(self, fires: xr.Dataset, *, whole: bool) -> xr.Dataset:
        """The fires as they replace stored ones; `whole` if no other fire is kept."""
        fires = with_user_weather(fires, self.weather)
        if not whole:
            fires = self._as_stored(fires)
        if has_weather(fires):
            longest = _whole_days(fires)
            if self.weather_hours and longest > self.weather_hours:
                raise PlumecastError(
                    f"{self.path} holds {self.weather_hours:g} h of weather, but fire "
                    f"'{_first(fires)}' lasts longer; read all fires into a new store"
                )
            self.weather_hours = self.weather_hours or longest
            fires = pad_weather(fires, self.weather_hours)
        if whole and self.fuel is None and not self.mixed_fuel:
            self.fuel = _fuel(fires)
        if not self._fuel_differs(fires):
            return fires
        self.mixed_fuel = True
        return fires.drop_vars(FUEL_LOAD, errors="ignore")

    def check_fuel(self, fires: xr.Dataset, source: str) -> None:
        """Raise if the stored fires lack the fuel map of fires whose fuels were given."""
        if self.has_wind is not None and self._fuel_differs(fires):
            what = "other fuels" if self.fuel is not None else "no fuel load"
            raise PlumecastError(
                f"{self.path} has fires with {what}, but {source} was given for fire "
                f"'{_first(fires)}'; read them into a new store"
            )

    def finish(self) -> None:
        """After fires were replaced: remove the fuel map if it is not that of all fires."""
        if self.mixed_fuel and FUEL_LOAD in open_snapshots(self.path, fields=()).variables:
            drop_variable(self.path, FUEL_LOAD)

    def leaves_out_weather(self, fires: xr.Dataset) -> bool:
        """Whether the fires have a weather that a store without weather does not take."""
        replaced = self.weather is not None and is_hourly(self.weather)
        return self.weather_hours == 0.0 and has_weather(fires) and not replaced

    def _as_stored(self, fires: xr.Dataset) -> xr.Dataset:
        """With weather only where the store has it; raises if one was given or is missing.

        Raises also if the fires have another smoke scheme.
        """
        fire = _first(fires)
        if self.scheme != _scheme(fires):
            raise PlumecastError(
                f"{self.path} holds runs with {SMOKE_SCHEME} {self.scheme}, but fire '{fire}' has "
                f"{SMOKE_SCHEME} {_scheme(fires)}, which releases smoke at other heights; put it "
                "into a store of its own"
            )
        if self.weather_hours and not has_weather(fires):
            raise PlumecastError(
                f"the fires in {self.path} have an hourly weather, but that of fire '{fire}' is "
                f"unknown; {STATE_WEATHER}"
            )
        if self.leaves_out_weather(fires):
            return without_weather(fires)
        if not self.weather_hours and has_weather(fires):
            raise PlumecastError(
                f"{self.path} was made without the weather of its fires; read all fires again with "
                "--weather into a new store"
            )
        return fires

    def _fuel_differs(self, fires: xr.Dataset) -> bool:
        """Whether the fires have another fuel map than the store, or only one of them has one."""
        fuel = _fuel(fires)
        if fuel is None or self.fuel is None:
            return fuel is not self.fuel
        return fuel.shape == self.fuel.shape and not np.allclose(fuel, self.fuel, atol=0.0)


def has_wind(fires: xr.Dataset) -> bool:
    """Whether snapshots have a mean wind."""
    return set(WIND) <= set(fires.variables)


def _whole_days(fires: xr.Dataset) -> float:
    """Hours of the weather that a store of these fires has."""
    return DAY * max(1.0, float(np.ceil(_last_hour(fires) / DAY)))


def _last_hour(fires: xr.Dataset) -> float:
    """Last hour of the weather that snapshots need; 0 without weather."""
    return float(fires[WEATHER_HOUR].values[-1]) if has_weather(fires) else 0.0


def _fuel(fires: xr.Dataset) -> Array | None:
    """(y, x) fuel load of a store; None without one."""
    return fires[FUEL_LOAD].values if FUEL_LOAD in fires.variables else None


def _scheme(fires: xr.Dataset) -> int:
    """The smoke scheme of WRF runs; those that do not state it have WRF's first one, 0."""
    return int(fires.attrs.get(SMOKE_SCHEME, 0))


def _first(fires: xr.Dataset) -> str:
    return str(min(fires.fire_id.values.tolist()))
