"""One bisection, wired: toolchain, compilation, oracle, search and report meet here and nowhere else."""
