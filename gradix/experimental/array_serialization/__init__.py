"""Arrays in files; each process writes the parts on its devices. See `pytree_serialization`."""

from gradix.experimental.array_serialization import pytree_serialization as pytree_serialization
from gradix.experimental.array_serialization.pytree_serialization import load as load, save as save
