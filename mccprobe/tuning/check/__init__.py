"""The gate: a kernel is right on every case, and every kernel that it can launch was launched by one."""
