"""XLA:GPU on CUDA: nothing is known yet that it should be asked for otherwise."""

REWRITES: tuple = ()
CHOICES: tuple = ()
