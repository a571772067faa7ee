"""What the reference's modules on processes offer is here under the same names, with the same parameters."""

import json
import subprocess
import sys

import pytest

# Parts of the reference's own making: primitives and their rules, and what it imports.
INTERNAL = {
    "Any",
    "P",
    "partial",
    "lru_cache",
    "safe_zip",
    "tree_flatten",
    "tree_unflatten",
    "global_array_to_host_local_array_impl",
    "global_array_to_host_local_array_p",
    "gtl_abstract_eval",
    "host_local_array_to_global_array_impl",
    "host_local_array_to_global_array_p",
    "ltg_abstract_eval",
    "ltg_batcher",
}
# Certificates for the connections of processes, which jaxlib takes from 0.12 on.
NOT_OFFERED = {"mtls_cert_file", "mtls_key_file", "mtls_ca_file", "mtls_peer_uri_prefix", "verify_secure_credentials"}
PROGRAM = """
import importlib, inspect, json, sys
out = {}
for name in ("distributed", "experimental.multihost_utils", "memory"):
    try:
        module = importlib.import_module(f"{sys.argv[1]}.{name}")
    except ImportError:
        module = getattr(importlib.import_module(sys.argv[1]), name)
    for n in dir(module):
        value = getattr(module, n)
        if not n.startswith("_") and callable(value):
            try:
                signature = inspect.signature(value)
            except (TypeError, ValueError):
                continue
            enum = [m.name for m in value] if isinstance(value, type) and hasattr(value, "__members__") else None
            out[f"{name}.{n}"] = enum or [(p.name, p.kind.name, repr(p.default)) for p in signature.parameters.values()]
print(json.dumps(out))
"""


@pytest.mark.parity
def test_names_and_parameters():
    pytest.importorskip("jax")
    ours, theirs = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", PROGRAM, name], capture_output=True, text=True, timeout=100, check=True
            ).stdout.splitlines()[-1]
        )
        for name in ("gradix", "jax")
    ]
    wanted = {
        k: [p for p in v if p[0] not in NOT_OFFERED] for k, v in theirs.items() if k.rpartition(".")[2] not in INTERNAL
    }
    assert {k: ours.get(k) for k in wanted} == wanted and len(wanted) >= 13
