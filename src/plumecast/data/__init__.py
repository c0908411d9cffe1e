"""The snapshot contract: schema, store, split, layout, covariates."""
