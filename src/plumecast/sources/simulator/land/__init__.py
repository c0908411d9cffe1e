"""Terrain, its fuels, and the smoke grid."""
