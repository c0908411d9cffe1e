"""The coded family: PCA of inputs and outputs, a polynomial or kernel between the codes."""
