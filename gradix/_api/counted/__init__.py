"""Sizes that values decide: how programs with them are processed before they are lowered."""
