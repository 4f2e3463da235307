"""Honest timing: repeats, statistics, interleaved pairs; nothing is timed that the gate did not pass."""
