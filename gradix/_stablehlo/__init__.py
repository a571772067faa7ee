"""How a program is written as StableHLO text; nothing here depends on operations or the engine."""
