"""The studies: each makes a table, draws its figures and says what it found."""
