"""Random bits, by counters."""
