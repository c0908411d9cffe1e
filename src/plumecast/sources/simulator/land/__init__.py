"""Terrain and fuels."""
