"""What a process with sessions is put together from, and what it does beside them."""
