"""What several tests use: small data, files of other models, places."""
