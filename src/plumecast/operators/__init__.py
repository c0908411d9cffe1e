"""The method on arrays: encodings, regressions, families of operators."""
