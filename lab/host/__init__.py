"""What runs on the host: scenario files, the guest's boot and its results."""
