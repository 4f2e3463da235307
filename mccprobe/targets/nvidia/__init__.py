"""NVIDIA's nvcc."""
