"""XLA:TPU: nothing is known that it should be asked for otherwise; products take the precision that they are given."""

REWRITES: tuple = ()
CHOICES: tuple = ()
