"""Programs saved to run elsewhere, and symbolic shapes: programs for arrays of many sizes."""
from gradix.export.shapes import (
    is_symbolic_dim as is_symbolic_dim,
    symbolic_args_specs as symbolic_args_specs,
    symbolic_shape as symbolic_shape,
    SymbolicScope as SymbolicScope,
)
