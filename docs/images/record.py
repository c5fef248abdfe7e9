"""What `pictures.json` says of each picture: its bytes, the run's commit, and what is named in it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
RECORD = FOLDER / "pictures.json"
PICTURES = ("report.png", "asking.png", "calibration.png", "training.png", "gate_failed.png", "round_failed.png")


def entry(content: bytes, commit: str, shown: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A picture's lines of `pictures.json`.

    Args:
        content: its bytes.
        commit: of the run that it shows, as is said below the picture.
        shown: what is named in it: `criteria` of the judge and rules, or `gates`.
    """
    return {
        "sha256": hashlib.sha256(content).hexdigest(),
        "commit": commit,
        "shown": {kind: list(names) for kind, names in shown.items()},
    }
