"""kernel.toml: what mccprobe knows about a kernel, and where the shipped kernels lie."""
