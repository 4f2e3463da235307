"""Compilers: where they are, what they can do, and the commands that drive them."""
