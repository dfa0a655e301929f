"""A session's past and present, a home's queues and schedules, as people and programs see them."""
