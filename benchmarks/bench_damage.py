"""Find which kind of damage fails which gate: apply every kind to a workspace, and evaluate all gates that read it.

    python benchmarks/bench_damage.py [ROWS [SHADOW]]

Builds an embedded pool and everything derived from it, applies one kind of damage after another to a copy, and
evaluates the gates. Prints the measured results as the tables of docs/experiments/damage-table.md. If a result differs
from what its kind expects, prints that to standard error and ends with 1.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.gates.damage_done import GATES, SIZE, Outcome, build_small, failing_gates, outcome
from tests.gates.damages import UNTRUE, Damage
from tests.gates.damages_by_gate import DAMAGES, NO_ROWS, OTHER_FILES, OTHERS, UNSEEN, WORDED
from tests.gates.damages_of_pieces import OF_PIECES

TITLES: Mapping[str, Sequence[Damage]] = {
    "Rows that say what is not so": UNTRUE,
    "Words and labels that the builder would not write": WORDED,
    "What is said to be missing": OF_PIECES,
    "What the other gates of the pool are for": OTHERS,
    "Damage to the other files": OTHER_FILES,
    "What is no row": NO_ROWS,
    "What no gate sees": UNSEEN,
}


def table(damages: Sequence[Damage], found: Mapping[str, Outcome]) -> list[str]:
    """Return one line per kind of damage; gates that are meant to find it are bold."""
    lines = [f"| damage | {' | '.join(GATES)} |", f"|---|{'---|' * len(GATES)}"]
    for damage in damages:
        failed = found[damage.name].failed
        cells = (_cell(failed[name].value, name in damage.meant) if name in failed else "" for name in GATES)
        name = damage.name.replace("<|", "<\\|").replace("|>", "\\|>")
        lines.append(f"| {name} |" + "".join(f" {cell} |" if cell else " |" for cell in cells))
    return lines


def _cell(status: str, meant: bool) -> str:
    return f"**{status}**" if meant else status


def unlike(found: Mapping[str, Outcome]) -> list[str]:
    """Return the kinds of damage that failed other gates than they expect."""
    return [
        f"{damage.name}: {sorted(found[damage.name].failed)}, not {sorted(damage.failing)}"
        for damage in DAMAGES
        if found[damage.name].failed.keys() != damage.failing
    ]


def main() -> int:
    """Build, damage, evaluate, print."""
    rows, shadow = (*map(int, sys.argv[1:]), *SIZE[len(sys.argv) - 1 :])
    found: dict[str, Outcome] = {}
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        whole, damaged = build_small(Path(folder, "whole"), rows, shadow), Path(folder, "damaged")
        clean = failing_gates(whole)
        for damage in DAMAGES:
            found[damage.name] = outcome(damage, whole, damaged)
            shutil.rmtree(damaged)
    print(f"undamaged: {clean or 'passed'}; {time.process_time() - start:.0f} s of CPU")
    noticed = sum(result.noticed for result in found.values())
    print(f"{len(found)} kinds; `integrity` failed where nothing else was written: {noticed}")
    more = sum(bool(found[damage.name].failed.keys() - damage.meant) for damage in DAMAGES)
    print(f"failed no gate: {sum(not result.failed for result in found.values())}; more than are meant: {more}")
    for title, damages in TITLES.items():
        print("\n".join(["", f"## {title}", "", *table(damages, found)]))
    wrong = unlike(found)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong or clean else 0


if __name__ == "__main__":
    sys.exit(main())
