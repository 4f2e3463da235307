"""What a trial's program run says: GOOD, BAD or UNRESOLVED, and who decides it."""
