"""Array types that the modules of the simulator share."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Field: TypeAlias = npt.NDArray[np.float64]
"""Real values on a grid, along a profile or in time; comments give the shape and the unit."""

Codes: TypeAlias = npt.NDArray[np.int16]
"""Fuel codes, one per cell."""

Mask: TypeAlias = npt.NDArray[np.bool_]
"""True or false for every cell."""
