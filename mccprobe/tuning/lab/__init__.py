"""The emulator as a laboratory: a kernel runs with every access watched; a broken rule is named with its place."""
