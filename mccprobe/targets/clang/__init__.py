"""Stock clang for the host."""
