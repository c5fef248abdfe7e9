"""A reward from the judge's scores: their weighted sum, or nothing if the judge gave no scores."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from rc1_lib.check_words import check_line
from rc1_lib.config.thresholds import Gates
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.judge.budget import whole_budget
from rc1_lib.judge.judge import Judge, check_judge, open_judge, open_store
from rc1_lib.judge.prompt import JudgeSpec, read_spec
from rc1_lib.judge.results import MIN_COVERAGE, Judged, JudgeStoppedError
from rc1_lib.records import Message, Rule
from rc1_lib.reward.rules import RULES, add_rules, messages_column
from rc1_lib.reward.terms import add_main, shape_checks
from rc1_lib.run import Run

_T = TypeVar("_T")
_LOG = logging.getLogger("rc1.reward")
STAGE = "scoring"
"""A separate stage: training asks again at every step, which should not be reported every time."""
_ENOUGH = 100
"""Dialogues from which too few scores end a training: as many as gate `judge_stability` reads."""
_LISTEN_S = 0.2
"""How often a blocking call checks whether to end."""


@dataclass(frozen=True, slots=True)
class Rated:
    """The reward of one dialogue.

    Attributes:
        reward: weighted sum of the judge's medians and the rules, `main` as computed by `rc1_lib.reward.terms`; None if
            the judge gave no scores.
        reason: why there is no reward; empty if there is one.
        unstable: whether the judge's samples disagree on a dimension by more than `gates.stability.max_variance`.
        models: the versions of the judge that answered.
    """

    reward: float | None
    reason: str
    unstable: bool
    models: tuple[str, ...]


def rated(judged: Judged, dialogues: Sequence[Sequence[Message]], weights: Mapping[str, float]) -> list[Rated]:
    """Compute the reward of each dialogue.

    Args:
        judged: the scores of these dialogues, in the same order.
        dialogues: their chat messages, which the rules read.
        weights: of the judge's dimensions and of rules.
    """
    rules: list[Rule] = [name for name in RULES if name in weights]
    rows = judged.rows
    if rules:
        rows = add_rules(rows.with_columns(messages_column(dialogues)), rules).drop("messages")
    found = add_main(rows, weights).select("main", "scored", "reason", "unstable", "models")
    return [
        Rated(main if scored else None, reason, unstable, tuple(models))
        for main, scored, reason, unstable, models in found.iter_rows()
    ]


class RewardLog:
    """Warns why dialogues have no score."""

    def __init__(self, of: str) -> None:
        """`of` is what is scored, for people: `dialogues`, `episodes`."""
        self._of = of

    def warn(self, judged: Judged) -> None:
        """Warn about what was found, with the three most frequent reasons."""
        for reason, count in judged.reasons[:3]:
            _LOG.warning("%d of %d %s are unscored: %s", count, len(judged.rows), self._of, reason)


class WeightedJudge:
    """Rewards by the judge during a training. Methods may be called from any thread.

    The judge's budget (`judge.budget`) covers all calls together. Each call obeys `judge.limits` separately; concurrent
    calls do not coordinate.
    """

    def __init__(self, source: Judge | Run, weights: Mapping[str, Any], gates: Gates | None = None) -> None:
        """Check the weights and, for a run, whether its judge can be asked.

        Args:
            source: a run, whose store is opened for each call, which any number of processes may do; or a judge with an
                open store.
            weights: `{dimension: weight}`, or that under the key `weights`, as in configs/weights.json.
            gates: thresholds; default: those of the run. A judge needs them.

        Raises:
            ConfigError: when the weights' gate rejects them, thresholds are missing, or the judge cannot be asked.
        """
        thresholds = source.config.gates if gates is None and isinstance(source, Run) else gates
        if thresholds is None:
            raise ConfigError("a judge alone has no thresholds: pass gates=run.config.gates as well, or pass the run")
        config = source.config.judge if isinstance(source, Run) else source.config
        spec = read_spec(source) if isinstance(source, Run) else source.spec
        self.weights = read_weights(weights, spec, thresholds)
        if isinstance(source, Run):
            check_judge(source)
        self._source = source
        self._spending = whole_budget(config)
        self._lock = threading.Lock()
        self._asked = self._scored = self._in_a_row = 0
        self._log = RewardLog("dialogues")

    async def rate(self, dialogues: Sequence[Sequence[Message]]) -> list[Rated]:
        """Ask the judge and return the reward of each dialogue.

        Raises:
            JudgeStoppedError: when the judge stopped.
            RC1Error: when too few dialogues have scores: among all so far, once there are 100, or none among the last
                100.
        """
        if not dialogues:
            return []
        with self._judge() as judge:
            judged = await judge.score_async(dialogues)
        if judged.stopped:
            raise JudgeStoppedError(f"no reward: the judge stopped: {judged.stopped}. Paid scores are kept")
        self._log.warn(judged)
        found = rated(judged, dialogues, self.weights)
        self._count(found, judged)
        return found

    @contextmanager
    def _judge(self) -> Iterator[Judge]:
        if isinstance(self._source, Judge):
            yield replace(self._source, spending=self._spending, stage=STAGE)
            return
        # Opened for each call: a connection to the store does not survive a trainer's forks.
        with open_store(self._source) as store:
            yield replace(open_judge(self._source, store), spending=self._spending, stage=STAGE)

    def _count(self, found: Sequence[Rated], judged: Judged) -> None:
        with self._lock:
            for item in found:
                self._asked += 1
                self._scored += item.reward is not None
                self._in_a_row = 0 if item.reward is not None else self._in_a_row + 1
            asked, scored, in_a_row = self._asked, self._scored, self._in_a_row
        reasons = judged.why_unscored
        if in_a_row >= _ENOUGH:
            raise RC1Error(
                f"no reward: the judge gave no scores for the last {in_a_row} dialogues, by reason: {reasons}"
            )
        if asked >= _ENOUGH and scored < MIN_COVERAGE * asked:
            raise RC1Error(
                f"no reward: the judge scored {scored / asked:.1%} of {asked} dialogues, expected at least "
                f"{MIN_COVERAGE:.0%}. Missing in the last call: {reasons or 'none'}"
            )


def read_weights(weights: Mapping[str, Any], spec: JudgeSpec, gates: Gates) -> dict[str, float]:
    """Return the weights by dimension, checked by their gate.

    Raises:
        ConfigError: names what the gate rejects.
    """
    content = weights if "weights" in weights else {"weights": weights}
    names = (*spec.dimensions, *RULES)
    failures = [check for check in shape_checks(content, gates.weights, names) if not check.passed]
    if failures:
        raise ConfigError(
            f"reward weights: {'; '.join(map(check_line, failures))}; the dimensions of '{spec.spec}' are "
            f"{', '.join(spec.dimensions)}, the rules {', '.join(RULES)}"
        )
    return {name: float(weight) for name, weight in content["weights"].items()}


def finish(work: Callable[[], Awaitable[_T]]) -> _T:
    """Run asynchronous work in a blocking call, even if this thread's event loop is already running.

    A running loop cannot be re-entered, so the work then gets a loop in another thread, and this one waits. An
    interruption ends the work in either case.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_as_coroutine(work))
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal:  # when left by an error, it cancels the work
        return _block_on(portal.start_task_soon(work))


def _block_on(future: Future[_T]) -> _T:
    """Block this thread's loop until the future is done, but notice Ctrl-C, which asyncio.run makes a cancellation."""
    caller = asyncio.current_task()
    before = caller.cancelling() if caller else 0
    while not wait((future,), timeout=_LISTEN_S).done:
        if caller and caller.cancelling() > before:
            raise asyncio.CancelledError
    return future.result()


async def _as_coroutine(work: Callable[[], Awaitable[_T]]) -> _T:
    return await work()
