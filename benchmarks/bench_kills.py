"""kill -9 at random moments of `rc1 preflight` and `rc1 train`: does the next start repair, and is the end the same?

    python benchmarks/bench_kills.py [LIVES [SEED]]

Runs both commands undisturbed in a small workspace. Then runs them in LIVES other workspaces, each killed ten times on
the way, and compares how they end. Prints a table and writes benchmarks/results/kills.json
after every life. Ends with 1 if anything differs.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.workspace.artifacts import now, write_json
from tests.kills.lives import STAGES, Life, Undisturbed
from tests.kills.worlds import OVERRIDES, PLAN, write_small_base

RESULT = Path(__file__).parent / "results/kills.json"
COLUMNS = {"kills": "kills", "opened": "a ticket held right after it", "mended": "repaired", "same": "same end"}


def live(base: Path, root: Path, seed: int, like: Undisturbed) -> dict[str, Any]:
    """Run one life: return its kills, how its end differs, and why it failed to reach one."""
    shutil.copytree(base, root / "base")
    life, differs, failed = Life(root, OVERRIDES), {}, ""
    try:
        differs = life.meet(PLAN, like, random.Random(seed))
    except AssertionError as fault:
        failed = str(fault)
    return {"seed": seed, "kills": [asdict(kill) for kill in life.kills], "differs": differs, "failed": failed}


def timetable(like: Undisturbed) -> dict[str, Any]:
    """Return exit codes and times of the undisturbed commands, and the number of compared entries."""
    return {"codes": like.codes, "start_s": like.start_s, "gaps": like.gaps, "compared": len(like.end)}


def table(lives: Sequence[dict[str, Any]]) -> list[str]:
    """Tabulate by stage: kills, those after which the state was valid, and those whose life reached the same end."""
    counted: dict[str, Counter[str]] = {stage: Counter() for stage in STAGES}
    for life in lives:
        ended = not life["failed"]
        for kill in life["kills"]:
            mended = ended and not kill["wrong"]
            counted[kill["hit"]] += Counter(
                kills=1, opened=kill["opened"], mended=mended, same=ended and not life["differs"]
            )
    lines = [f"| killed in | {' | '.join(COLUMNS.values())} |", f"|---|{'---|' * len(COLUMNS)}"]
    for stage, found in [*counted.items(), ("all", sum(counted.values(), Counter()))]:
        lines.append(f"| {stage} | {' | '.join(str(found[key]) for key in COLUMNS)} |")
    return lines


def main() -> int:
    """Run, kill, compare, print."""
    given = [int(argument) for argument in sys.argv[1:]]
    count, seed = (*given, *(10, 20250820)[len(given) :])
    lives: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "whole")
        write_small_base(whole)
        base = shutil.copytree(whole / "base", Path(folder, "base"))
        like = Life(whole, OVERRIDES).undisturbed()
        for number in range(count):
            lives.append(live(base, Path(folder, str(number)), seed + number, like))
            write_json(RESULT, {"recorded": now(), "undisturbed": timetable(like), "lives": lives})
            print({key: value for key, value in lives[-1].items() if key != "kills"}, flush=True)
    print("\n".join(table(lives)))
    wrong = any(life["failed"] or life["differs"] or any(kill["wrong"] for kill in life["kills"]) for life in lives)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
