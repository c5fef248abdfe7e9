"""What `pictures.json` says of each picture: its bytes, the run's commit, and what is named in it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
RECORD = FOLDER / "pictures.json"
PICTURES = ("asking.png", "gate_failed.png")


def entry(content: bytes, commit: str, gates: Sequence[str]) -> dict[str, Any]:
    """A picture's lines of `pictures.json`: its bytes, the commit of its run, and the gates that are named in it."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "commit": commit, "gates": list(gates)}
