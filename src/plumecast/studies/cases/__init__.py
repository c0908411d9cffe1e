"""The studies: each module has the table, the figures, the captions and the remarks of one."""
