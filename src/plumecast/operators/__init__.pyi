"""The public names of `plumecast.operators` and their homes."""

from .coded.fit import CodedSettings as CodedSettings
from .family import Operator as Operator
from .neural.map import NeuralSettings as NeuralSettings
from .pca import Basis as Basis
from .pca import fit_basis as fit_basis
from .pca import projection_error as projection_error
from .spectral.fit import SpectralSettings as SpectralSettings
