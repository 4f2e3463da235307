"""Minimal sets of flags, and the table of flags by pass."""
