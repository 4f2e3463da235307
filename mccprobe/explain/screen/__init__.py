"""Checks of the program before the compiler is blamed."""
