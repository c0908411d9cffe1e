"""Work that several studies share: fitted methods, their scores, literal algorithms."""
