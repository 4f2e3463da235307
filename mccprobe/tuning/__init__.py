"""Work on the speed of a kernel."""
