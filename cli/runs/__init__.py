"""`steersman run`, in a terminal and elsewhere."""
