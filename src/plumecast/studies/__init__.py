"""Studies: one module per table or figure of the paper, run on any snapshot store."""
