"""Random damage to bytes, texts and files."""

from __future__ import annotations

import random
from pathlib import Path

ODD_NUMBERS = (
    "0", "-1", "1", "nan", "inf", "-inf", "1e37", "1e308", "-1e308", "1e-320", "3e7", "2147483648",
    "-9999", "99999999999999999999", "0x10", "1,5", "١", "", "-", "1e", "NULL", "true",
)  # fmt: skip
"""What a number in a text may be replaced with."""

_EDITS = ("flip", "flip", "flip", "set", "zero", "ones", "cut", "drop", "repeat", "move")


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """One to three random edits: flipped bits, overwritten, removed, repeated or moved ranges."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        changed = _edit(changed, rng)
    return bytes(changed)


def _edit(data: bytearray, rng: random.Random) -> bytearray:
    if not data:
        return bytearray(rng.randbytes(rng.randint(1, 64)))
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.choice((1, 2, 4, 8, 64, 512)))
    kind = rng.choice(
        ("flip", "flip", "flip", "set", "zero", "ones", "cut", "drop", "repeat", "move")
    )
    if kind == "flip":
        data[start] ^= 1 << rng.randrange(8)
    elif kind == "set":
        data[start:end] = rng.randbytes(end - start)
    elif kind == "zero":
        data[start:end] = bytes(end - start)
    elif kind == "ones":
        data[start:end] = b"\xff" * (end - start)
    elif kind == "cut":
        del data[start:]
    elif kind == "drop":
        del data[start:end]
    elif kind == "repeat":
        data[start:start] = data[start:end]
    else:
        piece = data[start:end]
        del data[start:end]
        place = rng.randrange(len(data) + 1)
        data[place:place] = piece
    return data


def mutate_text(text: str, rng: random.Random) -> str:
    """Replace, remove or repeat a word or a line; numbers become odd ones."""
    lines = text.split("\n")
    row = rng.randrange(min(len(lines), 12)) if rng.random() < 0.7 else rng.randrange(len(lines))
    words = lines[row].split(" ")
    place = rng.randrange(len(words))
    kind = rng.choice(("odd", "odd", "odd", "drop", "repeat", "line", "twice", "bytes"))
    if kind == "odd":
        words[place] = rng.choice(ODD_NUMBERS)
    elif kind == "drop":
        del words[place]
    elif kind == "repeat":
        words.insert(place, words[place])
    lines[row] = " ".join(words)
    if kind == "line":
        del lines[row]
    elif kind == "twice":
        lines.insert(row, lines[row])
    joined = "\n".join(lines)
    if kind == "bytes":
        return mutate_bytes(joined.encode(), rng).decode("latin-1")
    return joined


def damage_file(path: Path, rng: random.Random) -> None:
    """Mutate the bytes of a file, in place."""
    path.write_bytes(mutate_bytes(path.read_bytes(), rng))


def damage_folder(folder: Path, rng: random.Random) -> Path:
    """Mutate, empty or remove one file of a folder; returns its path within the folder."""
    path = rng.choice(sorted(item for item in folder.rglob("*") if item.is_file()))
    kind = rng.random()
    if kind < 0.1:
        path.unlink()
    elif kind < 0.2:
        path.write_bytes(b"")
    else:
        damage_file(path, rng)
    return path.relative_to(folder)
