"""What a row's user replies if asked, recorded in the row so that the environment needs nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from rc1_lib.pool.templates import Template
from rc1_lib.records import Language, Slot, UserReplies

UNSURE: dict[Language, str] = {"en": "I do not know that.", "zh": "这个我不知道。"}
"""The reply when something is missing but the question asks for something else."""


def replies_of(row_id: str, template: Template, lang: Language, missing: Slot | None, heard: str | None) -> UserReplies:
    """Return both replies of a row's user, worded with the row's template.

    Args:
        row_id: picks the phrase if the dialogue contains none. It is hashed rather than drawn, so that whether the
            expert asks does not shift other random choices of the row.
        missing: the information that only the user has; None if nothing is missing.
        heard: what the user replies in the row's own dialogue, repeated whenever asked; None if nobody asks there.
    """
    if missing is None:
        return {"gives": None, "otherwise": heard or _pick(template.nothing_missing, row_id)}
    return {"gives": heard or _pick(template.reply, row_id).format(value=missing.value), "otherwise": UNSURE[lang]}


def _pick(phrases: Sequence[str], row_id: str) -> str:
    return phrases[int.from_bytes(hashlib.sha256(row_id.encode()).digest()[:4], "big") % len(phrases)]
