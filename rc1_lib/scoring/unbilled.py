"""Scoring by a judge whom nobody pays, in memory: the same replies, read and put together as `Judge` does.

A store guards what was paid for, with several commits a sample. Of the local rubric there is nothing to guard: it says
the same of the same dialogue however often it is asked, so that all samples of a dialogue are its one reply.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.errors import RowError
from rc1_lib.records import Message
from rc1_lib.scoring.attempts import Got, Wanted
from rc1_lib.scoring.calls import Ask, CallFailedError, Provider, Sampling
from rc1_lib.scoring.dialogues import misfit
from rc1_lib.scoring.judged import Judged, gather
from rc1_lib.scoring.prompt import JudgeSpec, dialogue_sha256
from rc1_lib.scoring.providers.local_rubric import LocalRubric
from rc1_lib.scoring.recent_rates import RecentRates
from rc1_lib.scoring.reply import BadReplyError, read_scores
from rc1_lib.scoring.usage_lines import AttemptOutcome

_NO_TRAFFIC = RecentRates(
    rps=0.0, share_429=0.0, avg_latency_ms=None, p95_latency_ms=None, in_flight=0, concurrency=0, rate=0.0, requests=0,
    throttled=0,
)  # fmt: skip


async def score_unbilled(
    dialogues: Sequence[Sequence[Message]], config: JudgeConfig, spec: JudgeSpec, max_variance: float
) -> Judged:
    """Score dialogues with the local rubric; equal ones are read once.

    Args:
        dialogues: chat messages of each.
        config: `judge`: how many samples a dialogue has.
        spec: whose dimensions are graded.
        max_variance: `gates.stability.max_variance`.

    Raises:
        RowError: when one of them is no dialogue.
    """
    for place, messages in enumerate(dialogues, 1):
        if fault := misfit(list(messages)):
            raise RowError(f"dialogue {place} of {len(dialogues)} cannot be judged: {fault}")
    names = [dialogue_sha256(messages) for messages in dialogues]
    provider = LocalRubric()
    wanted, got = [], {}
    for name, messages in dict(zip(names, dialogues, strict=True)).items():
        reply = await _asked(provider, name, messages, config, spec)
        for sample in range(config.samples):
            wanted.append(Wanted(f"{name}/{sample}", name, messages, sample))
            got[wanted[-1].key] = reply
    return gather(
        names, wanted, got, config, spec, max_variance,
        stopped="", usd=0.0, calls=0, test_double=False, traffic=_NO_TRAFFIC, run_id=uuid.uuid4().hex,
    )  # fmt: skip


async def _asked(
    provider: Provider, name: str, messages: Sequence[Message], config: JudgeConfig, spec: JudgeSpec
) -> Got:
    sampling = Sampling(**config.sampling.model_dump())
    ask = Ask("", "", {}, sampling, attempt_id=name, idempotency_key=name, messages=messages)
    try:
        answer = await provider.ask(ask)
    except CallFailedError as failed:
        return Got(None, AttemptOutcome(failed.fault.value), failed.detail, "")
    try:
        return Got(read_scores(answer.text, spec.dimensions), AttemptOutcome.OK, "", answer.model, answer.text)
    except BadReplyError as error:
        return Got(None, AttemptOutcome.BAD_REPLY, f"the reply {error}", answer.model, answer.text)
