"""Score dialogues in a separate process, which a test can kill."""

from __future__ import annotations

import json
from pathlib import Path

from tests.judge.bench import Bench, dialogues


def main(folder: str, url: str, provider: str, count: str, *more: str) -> None:
    judged = Bench(Path(folder)).score_at(url, dialogues(int(count)), *more, provider=provider)
    print(json.dumps({"coverage": judged.coverage, "stopped": judged.stopped, "calls": judged.calls}))
