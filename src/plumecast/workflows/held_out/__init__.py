"""Scores of fires that a fit has not seen: out of fold, in other stores, and the verdict."""
