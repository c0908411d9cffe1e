"""Fire spread: Rothermel's spread rates and the arrival times that follow from them."""
