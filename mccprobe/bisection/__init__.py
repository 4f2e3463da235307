"""Bisection over an axis (`axis.py`), the judge of its objects (`judge.py`), and the axis of pass executions."""
