"""Records of what was found, and pure functions from record to text, JSON and Markdown."""
