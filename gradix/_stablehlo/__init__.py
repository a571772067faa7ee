"""How a program is spelled: StableHLO text.  Knows no operation and no engine."""
