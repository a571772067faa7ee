"""What a program is: dtypes, avals, primitives, traces, jaxprs and the array itself."""
