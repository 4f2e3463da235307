"""Moore Threads' mcc."""
