"""The Icechunk repository of a store: one writer, durable commits, rewriting, garbage."""
