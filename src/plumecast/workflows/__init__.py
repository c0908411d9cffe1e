"""What a user runs: simulate, ingest, train, evaluate, predict, ensemble, tune."""
