"""Where snapshots come from; each source returns the same Dataset."""
