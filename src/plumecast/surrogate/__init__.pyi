"""The public names of `plumecast.surrogate` and their homes."""

from .baselines import fit_baseline as fit_baseline
from .fit import wrap_operator as wrap_operator
