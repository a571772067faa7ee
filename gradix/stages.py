"""The stages of compilation, from a traced function to a compiled one, and the types they tell."""

from gradix._api.jit.stages import (
    ArgInfo as ArgInfo,
    Compiled as Compiled,
    CompilerOptions as CompilerOptions,
    Lowered as Lowered,
    Traced as Traced,
    Wrapped as Wrapped,
)
