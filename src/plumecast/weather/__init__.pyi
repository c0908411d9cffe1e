"""The public names of `plumecast.weather` and their homes."""

from .options import DefaultProfile as DefaultProfile
from .options import Site as Site
from .read import constant_weather as constant_weather
from .fires import with_weather as with_weather
from .fires import with_winds as with_winds
