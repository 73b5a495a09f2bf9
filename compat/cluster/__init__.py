"""The cluster as plain, checked data: jobs, tasks, addresses, roles and ports."""
