"""The tasks, one file each: they turn items into requests, and responses into records."""
