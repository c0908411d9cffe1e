"""Studies: one module per table or figure of the paper, run on any snapshot store."""

import lazy_loader

from plumecast.base.errors import require

require("matplotlib", "report", "a study")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
