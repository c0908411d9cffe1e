"""The registry of families: a new family is one file and one line here."""

from __future__ import annotations

from plumecast.operators.coded.fit import CODED
from plumecast.operators.family import Family
from plumecast.operators.neural.map import FNO, UNET
from plumecast.operators.spectral.fit import SPECTRAL

FAMILIES: dict[str, Family] = {one.name: one for one in (CODED, SPECTRAL, UNET, FNO)}

NETWORKS = tuple(name for name, family in FAMILIES.items() if family.extra == "neural")
"""Families of neural networks."""
