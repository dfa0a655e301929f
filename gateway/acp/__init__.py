"""steersman as an agent of the Agent Client Protocol."""
