"""Work that the studies share: encodings, fitted methods, their scores, the literal fit."""
