"""The public names of `plumecast.impact` and their homes."""

from .compare import Comparing as Comparing
from .optics import Optics as Optics
from .solar_loss import Uncertainty as Uncertainty
from .solar_loss import Unrecorded as Unrecorded
