"""What report, notes, disasm, diff and lint find in objects, compiled first where they are sources."""
