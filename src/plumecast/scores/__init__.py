"""Metrics of arrays and fields: ROC, footprint, optical depth, quantiles, field statistics."""
