"""The journal across runs: what was tried, why, and what came of it, for good."""
