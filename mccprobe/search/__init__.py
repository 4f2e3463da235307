"""Pure search: no files, no processes, no clock, no global random numbers."""
