"""What is known of every snapshot beside its fields: covariates, winds, weather and fuels."""
