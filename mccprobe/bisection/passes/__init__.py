"""The axis of pass executions: the states are the limits of one translation unit."""
