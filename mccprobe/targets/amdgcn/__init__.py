"""clang for AMD GPUs."""
