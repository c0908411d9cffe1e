"""What the training fires cover, and guards against predictions beyond it."""
