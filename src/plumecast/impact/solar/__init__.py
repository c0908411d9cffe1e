"""Smoke → optical depth → irradiance → energy of solar plants."""
