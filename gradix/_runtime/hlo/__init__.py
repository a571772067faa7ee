"""Compiled programs as XLA describes them: instructions, where they come from, and memory."""
