"""Error bars of predictions, calibrated by ignition on smoke that the fit has not seen."""
