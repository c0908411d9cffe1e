"""Checksums of the snapshots in a store: written with them, verified whenever a field is read.

Every snapshot has one text: the checksum of its labels and one of each of its fields, of the values
as they are stored, so that neither chunks nor the file format matter. An attribute of the store
names the labels and holds the checksums of the grid and of the attributes.
"""

from __future__ import annotations

import hashlib
import json
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import (
    RESTORE,
    ChangedWarning,
    DamagedError,
    field_checksums,
    is_damage,
    short_reason,
)
from plumecast.base.names import DATA_VERSION, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks
from plumecast.data.lazy_store import lazy_variable
from plumecast.data.split import group_rows

CHECKSUMS = "checksums"
"""Coordinate of a store, one text per snapshot, and the attribute that describes it. An opened
store has neither: its fields verify themselves."""

_KNOWN, _CHANGED = "plumecast_checksums", "plumecast_changed_attributes"  # keys in an encoding
_NOT_CHECKED = (CHECKSUMS, DATA_VERSION, "history")  # programs add lines to a history
_LONG_NAME = "checksum of the labels, then CRC-32 of each field"
_LABEL_DIGITS = 16
_BLOCK = 256  # snapshots read at once
_ODD = np.uint64(0x9E3779B97F4A7C15)


def with_checksums(snapshots: xr.Dataset) -> xr.Dataset:
    """Snapshots of stored types with the checksums of their values; others are returned as is."""
    plain = snapshots.drop_vars(CHECKSUMS, errors="ignore")
    plain.attrs.pop(CHECKSUMS, None)
    if SNAPSHOT not in plain.dims:
        return plain
    columns = {
        str(name): field_checksums(item.values).tolist()
        for name, item in plain.variables.items()
        if item.dims[:1] == (SNAPSHOT,) and item.ndim > 1 and item.dtype.kind in "fiub"
    }
    parts = [[f"{name}:{value:08x}" for value in columns[name]] for name in sorted(columns)]
    labels = [f"{value:0{_LABEL_DIGITS}x}" for value in label_checksums(plain).tolist()]
    texts = np.array([" ".join(row) for row in zip(labels, *parts, strict=True)], dtype=object)
    checked = plain.assign_coords({CHECKSUMS: (SNAPSHOT, texts, {"long_name": _LONG_NAME})})
    return checked.assign_attrs({CHECKSUMS: describe_checksums(plain)})


def checksums_after_relabelling(snapshots: xr.Dataset) -> Array:
    """(M,) texts of stored snapshots with the checksums of their labels as they are now."""
    pairs = zip(label_checksums(snapshots).tolist(), snapshots[CHECKSUMS].values, strict=True)
    texts = [f"{now:0{_LABEL_DIGITS}x}{str(text)[_LABEL_DIGITS:]}" for now, text in pairs]
    return np.array(texts, dtype=object)


def describe_checksums(snapshots: xr.Dataset) -> str:
    """The attribute of a store: names of its labels, checksums of its grid and its attributes."""
    checksums = {"grid": _grid_checksum(snapshots), "attributes": _attributes(snapshots)}
    return json.dumps({"labels": _labels_of(snapshots)} | checksums)


def label_checksums(snapshots: xr.Dataset, names: Iterable[str] | None = None) -> Array:
    """(M,) checksum of the labels of each snapshot: multiplied and mixed, column by column.

    Numbers count as the bits of their float64, texts as their CRC-32.
    """
    mixed = np.zeros(snapshots.sizes[SNAPSHOT], dtype=np.uint64)
    for name in sorted(_labels_of(snapshots) if names is None else names):
        values = snapshots[name].values
        if values.dtype.kind in "fiub":
            plain = values.astype(np.float64)
            column = np.where(np.isnan(plain), np.nan, plain + 0.0).view(np.uint64)
        else:
            texts = (zlib.crc32(str(text).encode("utf-8", "replace")) for text in values.tolist())
            column = np.fromiter(texts, dtype=np.uint64, count=values.size)
        with np.errstate(over="ignore"):
            mixed ^= column + np.uint64(zlib.crc32(name.encode()))
            mixed *= _ODD
            mixed ^= mixed >> np.uint64(29)
    return mixed


def _labels_of(snapshots: xr.Dataset) -> list[str]:
    """The variables on `snapshot` alone that hold numbers or texts."""
    return sorted(
        str(name)
        for name, item in snapshots.variables.items()
        if item.dims == (SNAPSHOT,) and item.dtype.kind in "fiubUOT" and name != CHECKSUMS
    )


def _grid_checksum(snapshots: xr.Dataset) -> dict[str, int]:
    """The checksum of every variable that all snapshots share, such as x and y."""
    return {
        str(name): zlib.crc32(np.ascontiguousarray(item.values, dtype=np.float64).tobytes())
        for name, item in sorted(snapshots.variables.items(), key=lambda pair: str(pair[0]))
        if SNAPSHOT not in item.dims and item.dtype.kind in "fiub"
    }


def _attributes(snapshots: xr.Dataset) -> dict[str, int]:
    """The checksum of the attributes of the store ("") and of each of its variables."""
    parts = {"": snapshots.attrs} | {
        str(name): item.attrs for name, item in snapshots.variables.items() if name != CHECKSUMS
    }
    return {name: zlib.crc32(_plain(attrs).encode()) for name, attrs in sorted(parts.items())}


def _plain(attrs: Mapping[Any, Any]) -> str:
    """Attributes as one text, the same whether they were read from JSON or from NetCDF."""
    own = {str(name): np.ravel(value) for name, value in attrs.items()}
    texts = {
        name: (value.astype(np.float64) if value.dtype.kind in "fiub" else value).astype(str)
        for name, value in own.items()
        if name not in _NOT_CHECKED
    }
    return repr([(name, texts[name].tolist()) for name in sorted(texts)])


@dataclass(frozen=True, slots=True)
class _StoredField:
    """Reads one field of a store. Damage is one line; whole snapshots are verified."""

    variable: xr.Variable
    name: str
    path: str
    fires: Array  # (M,)
    checksums: Array | None  # (M,) or, in a store without checksums, None

    def __call__(self, key: tuple[Any, ...]) -> Array:
        try:
            values = np.asarray(self.variable[key].values)
        except PlumecastError:
            raise
        except Exception as error:
            if not is_damage(error):
                raise
            raise DamagedError(
                f"{self.path}: '{self.name}' of {self._who(self._unreadable(key))} cannot be read "
                f"({short_reason(error)}); {RESTORE}"
            ) from error
        parts = zip(key[1:], self.variable.shape[1:], strict=True)
        whole = all(isinstance(part, slice) and range(n)[part] == range(n) for part, n in parts)
        if self.checksums is not None and whole:  # not parts of the grid
            expected = np.atleast_1d(self.checksums[key[0]])
            found = field_checksums(values.reshape(expected.size, *self.variable.shape[1:]))
            wrong = np.flatnonzero(found != expected)
            if wrong.size:
                rows = np.atleast_1d(np.arange(self.fires.size)[key[0]])[wrong]
                raise DamagedError(
                    f"{self.path}: '{self.name}' of {self._who(rows)} is not what was written "
                    f"(its checksum differs); {RESTORE}"
                )
        return values

    def _unreadable(self, key: tuple[Any, ...]) -> Array:
        """The rows of a request that fail when they are read one by one; all where none does."""
        rows = np.atleast_1d(np.arange(self.fires.size)[key[0]])
        failed = []
        for row in rows:
            try:
                np.asarray(self.variable[(row, *key[1:])].values)
            except Exception as error:
                if not is_damage(error):
                    raise
                failed.append(row)
        return np.array(failed) if failed else rows

    def _who(self, rows: Any) -> str:
        names = sorted(set(np.atleast_1d(self.fires[rows]).tolist()))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"fire '{names[0]}'{more}" if names else "no fire"


def verify_as_read(snapshots: xr.Dataset, path: Path) -> xr.Dataset:
    """An opened store whose fields verify themselves when they are read.

    Labels and grid are verified at once. The checksums leave the data set, because fields that are
    computed from it have others. A store without checksums is returned with the same fields.
    """
    has = CHECKSUMS in snapshots.variables, CHECKSUMS in snapshots.attrs
    by_field: dict[str, Array] = {}
    changed: list[str] = []
    if any(has):
        if not all(has):
            part = "column" if has[1] else "description"
            raise DamagedError(f"the {part} of its checksums is missing; {RESTORE}")
        by_field, changed = _verify(snapshots)
        snapshots = snapshots.drop_vars(CHECKSUMS)
        snapshots.attrs.pop(CHECKSUMS)
    count = snapshots.sizes.get(SNAPSHOT, 0)
    known = snapshots.get("fire_id")
    if known is None or known.dims != (SNAPSHOT,):  # refused by the checks of the structure
        fires = np.arange(count).astype(str)
    else:
        fires = known.values.astype(str)
    fields = {
        name: lazy_variable(
            item, _StoredField(item, str(name), str(path), fires, by_field.get(str(name)))
        )
        for name, item in snapshots.variables.items()
        if item.dims[:1] == (SNAPSHOT,) and item.ndim > 1
    }
    checked = snapshots.assign(fields)
    checked.encoding |= {_KNOWN: any(has), _CHANGED: changed}
    return checked


def has_checksums(snapshots: xr.Dataset) -> bool | None:
    """Whether an opened store has checksums; None if the data set was not opened from a store."""
    return snapshots.encoding.get(_KNOWN)


def _verify(snapshots: xr.Dataset) -> tuple[dict[str, Array], list[str]]:
    """Verify labels and grid; the checksums of the fields by name, (M,) each.

    Also the variables whose attributes changed, with a warning: a user may correct an attribute.
    """
    try:
        record = json.loads(snapshots.attrs[CHECKSUMS])
        labels, grid, attributes = (dict.fromkeys(record["labels"]), dict(record["grid"]),
                                    dict(record["attributes"]))  # fmt: skip
        texts = [str(text).split(" ") for text in snapshots[CHECKSUMS].values.tolist()]
        expected = np.array([int(text[0], 16) for text in texts], dtype=np.uint64)
        parts = [dict(item.split(":") for item in text[1:]) for text in texts]
        by_field = {
            name: np.array([int(part[name], 16) for part in parts], dtype=np.uint32)
            for name in parts[0]
        }
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError):
        raise DamagedError(f"its checksums cannot be read; {RESTORE}") from None
    missing = sorted({*labels, *grid, *by_field} - set(map(str, snapshots.variables)))
    if missing:
        raise DamagedError(f"'{missing[0]}' is missing, which was written; {RESTORE}")
    wrong = np.flatnonzero(label_checksums(snapshots, labels) != expected)
    if wrong.size:
        who = snapshots.get("fire_id")
        first = wrong[0] if who is None else str(who.values[wrong[0]])
        raise DamagedError(
            f"the labels of {wrong.size} snapshots, first of fire '{first}', are not those that "
            f"were written ({', '.join(labels)}: their checksum differs); {RESTORE}"
        )
    now = _grid_checksum(snapshots[list(grid)])
    for name, value in grid.items():
        if now.get(name) != value:
            raise DamagedError(f"'{name}' is not what was written; {RESTORE}")
    changed = [name for name, value in _attributes(snapshots).items()
               if attributes.get(name, value) != value]  # fmt: skip
    for name in changed:
        what = f"attributes of '{name}'" if name else "attributes of the store"
        warnings.warn(
            f"the {what} are not those that were written; check its units and notes",
            ChangedWarning,
            stacklevel=4,
        )
    return by_field, changed


def changed_attributes(snapshots: xr.Dataset) -> list[str]:
    """Variables of an opened store, "" for itself, whose attributes are not those written."""
    return list(snapshots.encoding.get(_CHANGED, ()))


def fire_fingerprints(snapshots: xr.Dataset, fields: Sequence[str]) -> dict[str, str]:
    """A short digest of the fields of every fire in single precision, by `fire_id`."""
    if "fire_id" not in snapshots.variables:
        raise PlumecastError(
            "coordinate 'fire_id' is missing, so that it is unknown which fires are new; add it"
        )
    count = snapshots.sizes[SNAPSHOT]
    sums = np.empty((count, len(fields)), dtype=np.uint32)
    for rows in row_blocks(count, _BLOCK):
        for column, name in enumerate(fields):
            part = snapshots[name].isel({SNAPSHOT: rows}).transpose(SNAPSHOT, ...)
            sums[rows, column] = field_checksums(part.values.astype(np.float32))
    names = snapshots["fire_id"].values.astype(str)
    found = {}
    for rows in group_rows(names):
        texts = sorted(" ".join(map(str, row)) for row in sums[rows].tolist())
        digest = hashlib.blake2b(";".join(texts).encode(), digest_size=8)
        found[str(names[rows[0]])] = digest.hexdigest()
    return found
