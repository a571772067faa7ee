"""Errors that compiled code finds: which operations are checked and how, and how what they find becomes a result."""
