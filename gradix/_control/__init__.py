"""Primitives that hold programs: calls, branches, loops, custom derivatives, rematerialisation, callbacks."""
