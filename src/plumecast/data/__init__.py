"""The snapshot contract: schema, stores, split, layout as matrices, covariates."""
