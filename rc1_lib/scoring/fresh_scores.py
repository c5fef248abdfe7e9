"""Asking the judge past everything that is stored: what it says now, and what the usage log says of it."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from rc1_lib.errors import RC1Error
from rc1_lib.records import Message
from rc1_lib.run import Run
from rc1_lib.scoring.judge import check_judge, open_judge, open_store
from rc1_lib.scoring.judged import Judged


def fresh_scores(
    run: Run, dialogues: Sequence[Sequence[Message]], where: str | None = None
) -> tuple[Judged, pl.DataFrame]:
    """Have dialogues scored by the judge as it is now.

    Args:
        run: whose judge.
        dialogues: in chat format.
        where: path of the store that takes the replies, below the workspace; default: the judge's own.

    Returns:
        The scores, and the lines of the usage log that tell of them.

    Raises:
        RC1Error: when the judge cannot be asked, or stopped early.
    """
    check_judge(run)
    with open_store(run, where) as store:
        judged = open_judge(run, store).score(dialogues, fresh=True)
        lines = store.log(judged.run_id)
    if judged.stopped:
        raise RC1Error(f"the judge '{run.config.judge.provider}' stopped: {judged.stopped}")
    return judged, lines
