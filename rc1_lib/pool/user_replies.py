"""What the user of a row says when asked, written into the row so that a dialogue world needs nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from rc1_lib.pool.templates import Template
from rc1_lib.records import Language, Slot, UserReplies

UNSURE: dict[Language, str] = {"en": "I do not know that.", "zh": "这个我不知道。"}
"""Said where something is missing, but something else was asked for."""


def replies_of(row_id: str, template: Template, lang: Language, missing: Slot | None, heard: str | None) -> UserReplies:
    """Both sentences of a row's user, in the words of the row's template.

    Args:
        row_id: picks the phrase where the dialogue does not hold one. It is no draw: whether the teacher asks must not
            shift anything else in the row.
        template: of the row.
        lang: of the row.
        missing: what only the user can tell; None where nothing is missing.
        heard: what the user says in the row's own dialogue, and so whenever it is asked again; None where it is not
            asked there.
    """
    if missing is None:
        return {"gives": None, "otherwise": heard or _pick(template.nothing_missing, row_id)}
    return {"gives": heard or _pick(template.reply, row_id).format(value=missing.value), "otherwise": UNSURE[lang]}


def _pick(phrases: Sequence[str], row_id: str) -> str:
    return phrases[int.from_bytes(hashlib.sha256(row_id.encode()).digest()[:4], "big") % len(phrases)]
