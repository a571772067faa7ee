"""Checks of derivatives, for tests."""

from gradix._api.derivatives.gradient_checks import (
    check_grads as check_grads,
    check_jvp as check_jvp,
    check_vjp as check_vjp,
)

__all__ = ["check_grads", "check_jvp", "check_vjp"]
