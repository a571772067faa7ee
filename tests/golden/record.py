"""`python -m tests.golden.record`: write jaxprs and lowered texts of all programs anew, and say which changed."""

from .forms import FORMS, RECORDS, recorded, write
from .programs import PROGRAMS


def main() -> None:
    for kind, form in FORMS.items():
        before = recorded(kind) if RECORDS[kind].exists() else {}
        after = {name: form(name) for name in PROGRAMS}
        write(kind, after)
        changed = [name for name in after if before.get(name) != after[name]]
        print(f"{kind}: {len(after)} programs, {len(changed)} changed: {', '.join(changed) or 'none'}")


if __name__ == "__main__":
    main()
