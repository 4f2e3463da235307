"""Kernel launches and modules of a running program, recorded by a library for LD_PRELOAD."""
