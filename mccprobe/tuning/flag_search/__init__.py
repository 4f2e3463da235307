"""Faster flags that stay right: what is tried, in which order, and what each flag is worth."""
