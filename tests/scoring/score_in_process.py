"""Scores dialogues in a process of its own, which a test can kill: `python -m tests.scoring.score_in_process ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.scoring.bench import Bench, dialogues


def main() -> None:
    folder, url, provider, count, *more = sys.argv[1:]
    judged = Bench(Path(folder)).score_at(url, dialogues(int(count)), *more, provider=provider)
    print(json.dumps({"coverage": judged.coverage, "stopped": judged.stopped, "calls": judged.calls}))


if __name__ == "__main__":
    main()
