"""The public names of `plumecast.paper` and their homes."""

from .context import Context as Context
from .results import find_studies as find_studies
from .results import run_studies as run_studies
