"""The dialogues that RC1 ships for a probe of the judge: what is asked where there is no shadow set yet."""

from __future__ import annotations

from pathlib import Path

from rc1_lib.config.strict_yaml import parse_yaml
from rc1_lib.records import Message

_FILE = Path(__file__).with_name("probe_dialogues.yaml")


def probe_dialogues() -> list[list[Message]]:
    """Small dialogues in English and Chinese, in chat format, all different."""
    found: list[list[Message]] = parse_yaml(_FILE.read_text(encoding="utf-8"))
    return found
