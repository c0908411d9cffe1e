"""What an operator sees and predicts: lifted fields, targets, the frame of the wind."""
