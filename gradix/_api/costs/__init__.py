"""What compiled programs cost, by line of the user's program: time, memory, operations."""
