"""The bug report: made, archived, checked again."""
