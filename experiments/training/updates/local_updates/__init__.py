"""Updates that a worker makes on its copy of the variables, between messages to the servers."""
