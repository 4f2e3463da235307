"""What a kernel's numbers mean for the device: limits, occupancy, resources, data frames. Pure: no I/O."""
