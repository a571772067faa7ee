"""Small libraries for learning and for small programs: optimizers and layers of networks."""

from gradix.example_libraries import optimizers as optimizers, stax as stax
