"""The overview page: whether the data is safe, what is running, what to do."""
