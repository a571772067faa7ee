"""`python -m tests.golden.record`: write the lowered text of all programs anew, and say which changed."""

from .lowering import RECORD, lowered, recorded, write
from .programs import PROGRAMS


def main() -> None:
    before = recorded() if RECORD.exists() else {}
    after = {name: lowered(name) for name in PROGRAMS}
    write(after)
    changed = [name for name in after if before.get(name) != after[name]]
    print(f"{len(after)} programs, {len(changed)} changed: {', '.join(changed) or 'none'}")


if __name__ == "__main__":
    main()
