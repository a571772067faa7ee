"""Ground floor: pytrees, configuration, errors and source places. Knows nothing of arrays."""
