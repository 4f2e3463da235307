"""One round of work on a kernel: health, gate, timing, summary; and edits that are kept only when right."""
