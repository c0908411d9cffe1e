"""Labels and operator together: fit, predict, save, baselines."""
