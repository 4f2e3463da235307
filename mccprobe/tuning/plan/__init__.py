"""The arithmetic of a tile on paper: budgets, conflicts, loads, and what a model may say of its speed."""
