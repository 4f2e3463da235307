"""Compiles of one run: recorded jobs, cached bitcode, one object a limit, links; all on disk by hash."""
