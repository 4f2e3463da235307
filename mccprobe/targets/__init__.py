"""One folder for each vendor's compiler and device; what a target can be asked."""
