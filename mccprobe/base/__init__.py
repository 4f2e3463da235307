"""What everybody may import: errors, files, processes, the printer."""
