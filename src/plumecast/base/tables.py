"""Tables (CSV): one reader and one writer for all that people and programs exchange.

A reader states the columns that it understands (`TableFormat`); `read_table` finds them under the
names and in the units that people use, and checks every line. Rules that hold for all tables:

- The first line names the columns. Case, spaces, hyphens and underscores do not matter, and a unit
  may follow the name: `height [ft]`, `wind speed (mph)`, `capacity_kw`.
- Cells are separated by commas, semicolons or tabs, the same in all lines. Decimals have a point.
  Quotes (") hold text with separators; a cell does not span lines.
- Empty lines and lines that begin with # are skipped. The file is text in UTF-8.
- Columns that are not understood are kept as text and named in a warning.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.files import write_text
from plumecast.base.paths import check_regular
from plumecast.base.units import KINDS, Unit, parse_direction, parse_number, unit_named

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}

TEXT, NUMBER, DIRECTION = "text", "number", "direction"
"""Kinds of columns beside the kinds of units. A direction is an angle or a compass point."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+", re.ASCII)
_BRACKETS = re.compile(r"(.*?)\s*[(\[]\s*([^)\]]*?)\s*[)\]]")
_SEPARATORS = re.compile(r"[\s\-_.]+")


@dataclass(frozen=True, slots=True)
class Column:
    """A column that a reader understands."""

    name: str
    aliases: str = ""  # further names, separated by spaces, in lower case with underscores
    kind: str = TEXT  # of its unit (`base.units.KINDS`), or TEXT, NUMBER or DIRECTION
    low: float = -math.inf
    high: float = math.inf
    required: bool = True  # a table must have the column
    filled: bool = True  # its cells must not be empty
    no_unit: str = ""  # further names, that are refused unless the header states a unit

    def __post_init__(self) -> None:
        if self.kind not in (TEXT, NUMBER, DIRECTION, *KINDS):
            raise ValueError(f"kind={self.kind!r} of the column {self.name} is unknown")

    @property
    def units(self) -> Mapping[str, Unit]:
        """The units that its numbers may have; they are converted into the first."""
        return KINDS.get("angle" if self.kind == DIRECTION else self.kind, {})

    @property
    def unit(self) -> str:
        """The unit that its numbers are converted into; empty if there is none."""
        return next(iter(self.units), "")

    def unit_of(self, label: str) -> str | None:
        """The unit that a label means; None if the numbers cannot have it."""
        kind = "angle" if self.kind == DIRECTION else self.kind
        return unit_named(label, kind) if self.units else None

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the column, in lower case with underscores."""
        return (self.name.lower(), *self.aliases.split(), *self.no_unit.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """What a reader understands of a table, and what a line is about."""

    columns: tuple[Column, ...]
    row: str  # what a line is about, such as "place"
    row_name: str  # the column with its name
    unique: tuple[str, ...] = ()  # columns whose values, taken together, occur once

    @property
    def expected(self) -> str:
        """The names of the columns, for messages."""
        required = ", ".join(column.name for column in self.columns if column.required)
        optional = ", ".join(column.name for column in self.columns if not column.required)
        return required + (f" and, optionally, {optional}" if optional else "")


@dataclass(frozen=True, slots=True)
class Table:
    """The lines of a table that was read and checked."""

    source: str  # the file, for messages
    format: TableFormat
    lines: tuple[int, ...]  # (n,) number of each line in the file
    headers: Mapping[str, str]  # column → its header in the file
    units: Mapping[str, str]  # column → the unit that its header states
    texts: Mapping[str, tuple[str, ...]]  # column → its cells (n,), without spaces at the ends
    numbers: Mapping[str, np.ndarray]  # column → (n,) in the unit of the column, NaN if empty
    extra: Mapping[str, tuple[str, ...]]  # header of a column that is not understood → its cells

    def __len__(self) -> int:
        """Number of lines."""
        return len(self.lines)

    def __contains__(self, column: str) -> bool:
        """Whether the table has a column."""
        return column in self.headers

    def where(self, row: int) -> str:
        """Where a line is, to begin a message with: "towns.csv: line 3, place 'Camp'"."""
        name = self.texts[self.format.row_name][row] if self.format.row_name in self.texts else ""
        about = f", {self.format.row} '{name}'" if name else ""
        return f"{self.source}: line {self.lines[row]}{about}"

    def error(self, row: int, message: str) -> PlumecastError:
        """An error about a line."""
        return PlumecastError(f"{self.where(row)}: {message}")


class _Header(NamedTuple):
    """A header of the file that is understood."""

    text: str
    column: Column
    unit: str | None  # None if it states none
    position: int = 0  # of its cells in a line


def read_table(path: str | Path, table_format: TableFormat) -> Table:
    """Read a CSV file; raises with the file, the line and what to do."""
    where = check_regular(path)
    try:
        content = where.read_bytes()
    except FileNotFoundError:
        raise PlumecastError(
            f"{path}: no such file; give a table (CSV) with the columns {table_format.expected}"
        ) from None
    except OSError as error:
        raise PlumecastError(f"{path}: not a readable table ({error.strerror})") from error
    return parse_table(_decode(content, path), table_format, path)


def parse_table(text: str, table_format: TableFormat, source: str | Path = "the table") -> Table:
    """`read_table` of the text of a table; `source` is its name in messages."""
    header, rows = _split(text, source)
    headers, extra = _find_columns(header, table_format, source)
    table = Table(
        str(source),
        table_format,
        tuple(number for number, _ in rows),
        {name: found.text for name, found in headers.items()},
        {name: found.unit for name, found in headers.items() if found.unit is not None},
        {name: tuple(row[found.position] for _, row in rows) for name, found in headers.items()},
        {},
        {name: tuple(row[index] for _, row in rows) for name, index in extra.items()},
    )
    if not rows:
        raise PlumecastError(
            f"{source}: the table has no {table_format.row}, only the line with its columns"
        )
    unnamed = [index for index, name in enumerate(header) if not name]
    for row, (_, cells) in enumerate(rows):
        if any(cells[index] for index in unnamed):
            raise table.error(row, "a cell is in a column without a name; name it in the header")
    table = replace(table, numbers=_numbers(table, [header.column for header in headers.values()]))
    _check_unique(table)
    if extra:
        known = ", ".join(column.name for column in table_format.columns)
        shown = ", ".join(f"'{name}'" for name in extra)
        warnings.warn(
            f"{source}: the {'column is' if len(extra) == 1 else 'columns are'} not read: {shown}; "
            f"a table of {table_format.row}s has the columns {known}",
            PlumecastWarning,
            stacklevel=3,
        )
    return table


def _decode(content: bytes, source: str | Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark."""
    if content.startswith(b"PK\x03\x04"):
        raise PlumecastError(f"{source}: a spreadsheet or an archive; save the table as CSV")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len(re.split(rb"\r\n|\r|\n", content[: error.start]))
        raise PlumecastError(
            f"{source}: line {line} has the byte 0x{content[error.start]:02x}, which is not UTF-8; "
            "save the table as CSV in UTF-8"
        ) from None
    if "\0" in text:
        raise PlumecastError(f"{source}: not a text file; save the table as CSV in UTF-8")
    return text


def _split(text: str, source: str | Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Cells of the header, and number and cells of each further line."""
    lines = enumerate(re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")), start=1)
    comments: list[tuple[int, str]] = []
    content: list[tuple[int, str]] = []
    for number, line in lines:
        if line.strip(" \t,;"):
            (comments if line.lstrip().startswith("#") else content).append((number, line))
    if not content:
        raise PlumecastError(f"{source}: the table is empty; its first line names the columns")
    first = content[0][1]
    delimiter = max(DELIMITERS, key=lambda mark: re.sub(r'"[^"]*"', "", first).count(mark))
    (_, header), *rows = (
        (number, _cells(line, delimiter, f"{source}: line {number}")) for number, line in content
    )
    for number, line in comments:
        if re.match(r"\s*#\S", line) and line.count(delimiter) + 1 == len(header) > 1:
            raise PlumecastError(
                f"{source}: line {number} begins with # but has as many cells as the header; put "
                "quotes around its first cell, or a space after # to skip the line"
            )
    for number, cells in rows:
        if len(cells) != len(header):
            separators = DELIMITERS[delimiter]
            decimals = "write decimals with a point, and " if delimiter == "," else ""
            advice = f"{decimals}put quotes around text with {separators}"
            if len(cells) < len(header):
                advice = (
                    f"separate the cells of all lines by {separators}, also those that are empty"
                )
            raise PlumecastError(
                f"{source}: line {number} has {len(cells)} {'cell' if len(cells) == 1 else 'cells'}"
                f", but the header names {len(header)} columns; {advice}"
            )
    return header, rows


def _cells(line: str, delimiter: str, where: str) -> list[str]:
    try:
        (row,) = csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True)
    except csv.Error as error:
        raise PlumecastError(
            f'{where}: its cells cannot be told apart ({error}); close every quote (") in its '
            "line, and double quotes within text"
        ) from None
    return [cell.strip() for cell in row]


def _find_columns(
    header: Sequence[str], table_format: TableFormat, source: str | Path
) -> tuple[dict[str, _Header], dict[str, int]]:
    """The headers that are understood, by column, and the indices of the others, by header."""
    meanings = {name: column for column in table_format.columns for name in column.names}
    headers: dict[str, _Header] = {}
    extra: dict[str, int] = {}
    for index, text in enumerate(header):
        found = _understand(text, meanings, source)
        if found is not None and found.column.name in headers:
            raise PlumecastError(
                f"{source}: the columns '{headers[found.column.name].text}' and '{text}' are both "
                f"the {found.column.name}; keep one"
            )
        if found is not None:
            headers[found.column.name] = found._replace(position=index)
        elif text in extra:
            raise PlumecastError(f"{source}: column '{text}' occurs twice; keep one")
        elif text:
            extra[text] = index
    for column in table_format.columns:
        if column.required and column.name not in headers:
            raise PlumecastError(
                f"{source}: the column {column.name} is missing; expected {table_format.expected}; "
                f"found {', '.join(filter(None, header))}"
                + ("; separate the columns by commas" if len(header) == 1 else "")
            )
    return headers, extra


def _understand(text: str, meanings: Mapping[str, Column], source: str | Path) -> _Header | None:
    """The column that a header means, and the unit that it states; None if it is not known."""
    bracket = _BRACKETS.fullmatch(text)
    words = _SEPARATORS.split((bracket[1] if bracket else text).strip(" _-.").lower())
    name = "_".join(words)
    if name in meanings:
        column = meanings[name]
        label = bracket[2] if bracket and column.kind != TEXT else ""
        unit = column.unit_of(label) if label else None
        if label and unit is None:
            raise PlumecastError(
                f"{source}: '{label}' in the header '{text}' is no unit of {column.name}; "
                + (f"convert it to {column.unit}" if column.unit else "leave it out")
            )
        if unit is None and name in column.no_unit.split():
            raise PlumecastError(
                f"{source}: the unit of the column '{text}' is not stated; write it in the "
                f"header, such as '{text} ({column.unit})'"
            )
        return _Header(text, column, unit)
    for end in range(1, 1 if bracket else len(words)):
        name, label = "_".join(words[:end]), " ".join(words[end:])
        unit = meanings[name].unit_of(label) if name in meanings else None
        if unit is not None:
            return _Header(text, meanings[name], unit)
    return None


def _numbers(table: Table, columns: Iterable[Column]) -> dict[str, np.ndarray]:
    """The numbers of each column; checks all cells."""
    numbers = {}
    for column in columns:
        cells = table.texts[column.name]
        if column.filled and "" in cells:
            raise table.error(
                cells.index(""),
                f"{table.headers[column.name]} is empty; every {table.format.row} needs one",
            )
        if column.kind != TEXT:
            values = [_number(table, column, row) if cell else math.nan
                      for row, cell in enumerate(cells)]  # fmt: skip
            numbers[column.name] = np.array(values)
    return numbers


def _number(table: Table, column: Column, row: int) -> float:
    """The number in a cell, in the unit of its column."""
    text, header = table.texts[column.name][row], table.headers[column.name]
    value = parse_number(text)
    if value is None and column.kind == DIRECTION:
        with contextlib.suppress(PlumecastError):
            return parse_direction(text)
    if value is None:
        advice = "write decimals with a point" if _DECIMAL_COMMA.fullmatch(text) else "change it"
        raise table.error(row, f"{header} '{text}' is not a number; {advice}")
    if column.name in table.units:
        unit = column.units[table.units[column.name]]
        value = unit.factor * (value + unit.offset)
    if not column.low <= value <= column.high:
        within = f"from {column.low:g} to {column.high:g}"
        if not math.isfinite(column.high):
            within = f"of at least {column.low:g}"
        raise table.error(
            row, f"{header} is '{text}'; give a number {within} {column.unit}".rstrip()
        )
    return value


def _check_unique(table: Table) -> None:
    """Raise if two lines have the same values in the columns that must be unique."""
    names = [name for name in table.format.unique if name in table]
    earlier: dict[tuple[object, ...], int] = {}
    for row, line in enumerate(table.lines if names else ()):
        key = tuple(
            table.numbers[name][row] if name in table.numbers else table.texts[name][row]
            for name in names
        )
        if key in earlier:
            shown = ", ".join(f"{name} {table.texts[name][row]!r}" for name in names)
            raise PlumecastError(
                f"{table.source}: lines {earlier[key]} and {line} both have {shown}; keep one"
            )
        earlier[key] = line


def write_table(
    path: str | Path,
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    overwrite: bool = True,
    formats: Mapping[str, str] | None = None,
    floats: str = "",
    missing: str = "",
) -> Path:
    """Write a CSV table in UTF-8, atomically, or print it (`write_text`).

    `formats` are the format specifications of columns, and `floats` that of floating-point numbers
    in other columns; an empty one writes the shortest text that reads back without loss. None and
    NaN are written as `missing`.
    """

    def cell(name: str, value: object) -> str:
        if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
            return missing
        default = floats if isinstance(value, float | np.floating) else ""
        return format(value, (formats or {}).get(name, default))

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([cell(name, value) for name, value in zip(header, row, strict=True)])
    write_text(path, text.getvalue(), overwrite=overwrite)
    return Path(path)
