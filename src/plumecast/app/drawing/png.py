"""Small pictures as PNG, without a library for images."""

from __future__ import annotations

import struct
import zlib

import numpy as np

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TRUE_COLOUR_WITH_ALPHA = 6


def encode_png(rgba: np.ndarray) -> bytes:
    """PNG file of an (ny, nx, 4) picture of bytes, top row first."""
    ny, nx = rgba.shape[:2]
    rows = np.ascontiguousarray(rgba, dtype=np.uint8).reshape(ny, 4 * nx)
    unfiltered = np.zeros((ny, 1), dtype=np.uint8)
    header = struct.pack(">IIBBBBB", nx, ny, 8, _TRUE_COLOUR_WITH_ALPHA, 0, 0, 0)
    data = zlib.compress(np.hstack([unfiltered, rows]).tobytes(), 9)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
