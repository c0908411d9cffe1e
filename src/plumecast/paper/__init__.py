"""Studies: one module per table or figure of the paper, run on any snapshot store."""

from plumecast.base.errors import require

require("matplotlib", "report", "a study")
