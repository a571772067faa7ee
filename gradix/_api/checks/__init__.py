"""Errors that compiled code finds: which operations are checked, and how errors become results."""
