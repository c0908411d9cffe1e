"""Means and probabilities over fires, with intervals that count clusters, not samples."""
