"""How a program is written as StableHLO text; knows no operation and no engine."""
