"""The public names of `plumecast.paper` and their homes."""

from .context import Context as Context
from .results import run_studies as run_studies
from .studies import find_studies as find_studies
