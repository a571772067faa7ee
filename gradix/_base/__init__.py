"""The lowest layer, which knows no arrays: pytrees, options, errors and source places."""
