"""Records of every first-order primitive: samples, references, errors. The generic tests in tests/rules run them all."""

from tests.specs import contractions, decompositions, elementwise, gamma, indexing, moving, reducing, special
from tests.specs.spec import Spec

SPECS: dict[str, Spec] = {}
for _module in (elementwise, moving, indexing, reducing, contractions, decompositions, gamma, special):
    for _spec in _module.SPECS:
        assert _spec.name not in SPECS, _spec.name
        SPECS[_spec.name] = _spec
