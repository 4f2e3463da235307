"""Smaller sources with the same culprit."""
