"""The coded family: PCA of both sides, a polynomial or kernel between the codes."""
