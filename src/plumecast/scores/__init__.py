"""Metrics on arrays and fields: ROC, footprint, optical depth, quantiles, statistics."""
