"""Choose a surrogate by folds of ignitions."""
