"""The judge: K samples of every dialogue, from the store where they count and from the provider where not."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from rc1_lib.config.addresses import KEY_VARIABLE
from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.errors import ConfigError, RC1Error, RowError
from rc1_lib.judge import rubric
from rc1_lib.judge.budget import Spending, known_usd
from rc1_lib.judge.calls import AttemptOutcome, Line, Reply, is_test_double
from rc1_lib.judge.client import JudgeClient, Stopped, replayed
from rc1_lib.judge.limiter import RecentRates
from rc1_lib.judge.prompt import JudgeSpec, canonical, dialogue_sha256, misfit, read_spec
from rc1_lib.judge.providers import LIVE, check_model, endpoint, open_provider, request_settings
from rc1_lib.judge.reply import BadReplyError, read_scores
from rc1_lib.judge.results import Judged, SampleRequest, SampleResult, tables
from rc1_lib.judge.store import Store
from rc1_lib.masking import mask, secrets
from rc1_lib.records import Message
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.workspace.artifacts import sha256_json

STAGE = "judge"
_LOG = logging.getLogger("rc1.judge")
_TELL_EVERY_S = 1.0
_LOG_EVERY_S = 10.0
_BATCH = 500
"""Replays, or scores that nobody is billed for, written in one transaction."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Who scores, by which instructions, and where the replies are kept."""

    config: JudgeConfig
    spec: JudgeSpec
    store: Store
    profile: str
    confidence: float
    max_variance: float
    spending: Spending | None = None
    """Where the budget is that of several scorings together, what they have spent; else each has all of it."""
    stage: str = STAGE
    """The name that progress is reported under."""

    def score(self, dialogues: Sequence[Sequence[Message]], *, fresh: bool = False) -> Judged:
        """Score dialogues; the same dialogue twice is asked about once.

        A provider that fails, a spent budget or an interruption ends the run early; what was paid for is kept, and
        `Judged.stopped` says why. Nothing that failed holds a number.

        Args:
            dialogues: chat messages of each.
            fresh: ask the provider for everything, whatever is stored: a probe.

        Raises:
            ConfigError: when the provider cannot be opened with these settings.
            RowError: when one of them is no dialogue; nothing was asked then.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.score_async(dialogues, fresh=fresh))
        raise RC1Error("Judge.score was called on a running event loop; await Judge.score_async there instead")

    async def score_async(self, dialogues: Sequence[Sequence[Message]], *, fresh: bool = False) -> Judged:
        """The same on a running event loop; cancelling it leaves no open connection and no place taken."""
        _check_dialogues(dialogues)
        names = [dialogue_sha256(messages) for messages in dialogues]
        unique = dict(zip(names, dialogues, strict=True))
        self.store.remember([(name, canonical(messages)) for name, messages in unique.items()])
        asked = self._asked()
        wanted = [
            SampleRequest(_key(asked, name, sample), name, messages, sample)
            for name, messages in unique.items()
            for sample in range(self.config.samples)
        ]
        return await self.get(names, wanted, fresh=fresh)

    async def get(self, names: Sequence[str], wanted: Sequence[SampleRequest], *, fresh: bool) -> Judged:
        """Get samples that were wanted before; `score_async` and the asking again of bad replies share it."""
        config = self.config
        spending = Spending(config.budget, config.prices) if self.spending is None else self.spending
        client = JudgeClient(config, self.spec, self.store, spending, refuse_double=self.profile == "prod")
        spent, called = spending.usd, spending.calls
        known = self.store.model_of(endpoint(self.config))
        if known is not None and client.refuse_double and is_test_double(known[0]):
            known = None  # made-up scores do not get past profile prod by being stored
        if known is not None:
            client.model = known[0]
        run = _Work(client, len(wanted), self.stage)
        try:
            live = list(wanted) if known is None or fresh else await self._replay(client, run, wanted)
            await run.ask(live, fresh=fresh)
        finally:
            await client.aclose()
        return Judged(
            *tables(names, wanted, run.got, config, self.spec, self.max_variance), run_id=self.store.run_id,
            stopped=client.stop, usd=spending.usd - spent, calls=spending.calls - called,
            test_double=client.test_double or any(is_test_double(got.model) for got in run.got.values()),
            traffic=client.limiter.stats(), remedies=client.remedies,
        )  # fmt: skip

    async def _replay(self, client: JudgeClient, run: _Work, wanted: Sequence[SampleRequest]) -> list[SampleRequest]:
        """Take what is stored and counts; what remains to be asked.

        The version that answers today decides what counts. So what is not stored is asked before anything is replayed,
        and where everything is stored, one sample is asked again once the last look at the version is long ago.
        """
        stored = self._find(client, wanted)
        await run.ask([one for one in wanted if one.key not in stored], fresh=False)
        left = [one for one in wanted if one.key in stored]
        seen = self.store.model_of(endpoint(self.config))
        if left and seen is not None and self._is_old(seen[1]) and self.config.provider in LIVE:
            await run.ask(left[:1], fresh=True)
            checked = self.store.model_of(endpoint(self.config))
            if not client.stop and (checked is None or checked[1] <= seen[1]):
                client.stop = (
                    "the provider did not answer, so it is unknown whether the stored scores are still of its model "
                    "(judge.store.model_check_hours); run again when it answers"
                )
                return []
            if left[0].key in run.got and run.got[left[0].key].scores is not None:
                left = left[1:]  # else what is stored still counts, unless another version answered
        return run.replay(left, self._find(client, left))

    def _find(self, client: JudgeClient, wanted: Sequence[SampleRequest]) -> dict[str, Reply]:
        keys = [one.key for one in wanted]
        return self.store.find(keys, client.model, bad_attempts=self.config.limits.bad_reply_attempts)

    def _is_old(self, seen: float) -> bool:
        return self.store.now() - seen > 3600 * self.config.store.model_check_hours

    def key(self, dialogue: str, sample: int) -> str:
        """What was asked, but for the model version, which is known only when it has answered."""
        return _key(self._asked(), dialogue, sample)

    def _asked(self) -> dict[str, Any]:
        """What is the same of every sample that this judge is asked for."""
        return {
            "spec": self.spec.sha256,
            "endpoint": endpoint(self.config),
            **request_settings(self.config),
        }


def _key(asked: dict[str, Any], dialogue: str, sample: int) -> str:
    return sha256_json({**asked, "dialogue": dialogue, "sample": sample})


def check_judge(run: Run) -> None:
    """Look whether the judge can be asked at all, before anything is written; nothing is sent.

    Raises:
        ConfigError: when its provider is unknown, or its model, key, address or instructions are missing or unusable.
    """
    read_spec(run)
    if run.config.judge.provider in LIVE:
        check_model(run)
    asyncio.run(open_provider(run.config.judge).aclose())


def open_store(run: Run, where: str | None = None) -> Store:
    """The run's store of replies and usage log; close it.

    Args:
        run: whose.
        where: path of another one, below the workspace, for what the preflight's gates must not find in their log.
    """
    store = run.config.judge.store
    path = run.workspace.path(where or store.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return Store(path, ttl_days=store.ttl_days)


def open_judge(run: Run, store: Store) -> Judge:
    """The run's judge over an open store.

    Raises:
        ConfigError: when its instructions are missing or damaged, or its provider unknown.
    """
    config, gates = run.config.judge, run.config.gates
    if config.base_url is not None and mask(config.base_url, secrets()) != config.base_url:
        raise ConfigError(f"judge.base_url holds a secret; put it into {KEY_VARIABLE}")
    return Judge(
        config, read_spec(run), store, run.config.profile, gates.shared.confidence, gates.stability.max_variance
    )


class _Work:
    """The samples of one run: what is done, and the workers that do the rest."""

    def __init__(self, client: JudgeClient, total: int, stage: str) -> None:
        self.client, self.total, self.stage = client, total, stage
        self.got: dict[str, SampleResult] = {}
        self._begun = time.monotonic()
        self._shown = self._logged = 0.0
        self._live = 0

    def replay(self, wanted: Sequence[SampleRequest], found: dict[str, Reply]) -> list[SampleRequest]:
        """Take what is stored, log the scores among it as replays, and return what remains to be asked."""
        lines: list[Line] = []
        for one in wanted:
            if one.key in found:
                start = time.perf_counter()
                reply = found[one.key]
                self.got[one.key] = SampleResult.of(reply)
                if reply.scores is not None:
                    blank = self.client.line(one)
                    lines.append(replayed(blank, reply, 1000 * (time.perf_counter() - start)))
        for first in range(0, len(lines), _BATCH):
            self.client.store.replayed(lines[first : first + _BATCH])
        self._tell()
        return [one for one in wanted if one.key not in found]

    async def ask(self, wanted: Sequence[SampleRequest], *, fresh: bool) -> None:
        """Ask for all of them, as many at a time as the limiter can have under way."""
        if not wanted:
            return
        if self.client.config.provider in LIVE:
            await self._work_off(wanted, fresh)
        else:
            await self._ask_together(wanted, fresh)
        self._tell(last=True)

    async def _ask_together(self, wanted: Sequence[SampleRequest], fresh: bool) -> None:
        """The same where nobody is billed: many in one transaction of the store."""
        for first in range(0, len(wanted), _BATCH):
            batch = wanted[first : first + _BATCH]
            try:
                with self.client.store.together():
                    await self._work_off(batch, fresh)
            except RC1Error as error:
                for one in batch:
                    self.got.pop(one.key, None)  # what is not stored is not there
                self.client.halt(str(error))
            if self.client.stop:
                return

    async def _work_off(self, wanted: Sequence[SampleRequest], fresh: bool) -> None:
        queue = deque(wanted)
        workers = min(len(queue), self.client.config.limits.concurrency[1])
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(self._worker(queue, fresh))
        except* Stopped:
            pass  # said in client.stop; the others have ended what they had under way

    async def _worker(self, queue: deque[SampleRequest], fresh: bool) -> None:
        while queue and not self.client.stop:
            one = queue.popleft()
            try:
                self.got[one.key] = await self.client.get(one, fresh=fresh)
            except Stopped:
                return
            self._live += 1
            self._tell()

    def _tell(self, last: bool = False) -> None:
        now = time.monotonic()
        done = len(self.got)
        if last or done == self.total or now - self._shown >= _TELL_EVERY_S:
            self._shown = now
            usd = known_usd(self.client.config, self.client.spending.usd, self.client.spending.calls)
            note = traffic_note(self.client.limiter.stats(), usd, self._eta())
            report_progress(self.stage, done, self.total, note)
            if last or now - self._logged >= _LOG_EVERY_S:
                self._logged = now
                _LOG.info("%d/%d %s", done, self.total, note)

    def _eta(self) -> float | None:
        """Seconds to go at the pace so far; None before anything was asked."""
        if not self._live:
            return None
        return (self.total - len(self.got)) * (time.monotonic() - self._begun) / self._live


UNKNOWN_COST = "cost unknown: set judge.prices"


def traffic_note(traffic: RecentRates, usd: float | None, eta_s: float | None = None) -> str:
    """`rps 4.1, 429_rate 0.3 %, avg_latency 210 ms, p95 400 ms, in_flight 5, $0.0123, 40 s to go`."""
    parts = [f"rps {traffic.rps:.1f}", f"429_rate {100 * traffic.share_429:.1f} %"]
    if traffic.avg_latency_ms is not None and traffic.p95_latency_ms is not None:
        parts += [f"avg_latency {traffic.avg_latency_ms:.0f} ms", f"p95 {traffic.p95_latency_ms:.0f} ms"]
    parts += [f"in_flight {traffic.in_flight}", UNKNOWN_COST if usd is None else f"${usd:.4f}"]
    if eta_s is not None and eta_s >= 1:
        parts.append(f"{eta_s:.0f} s to go")
    return ", ".join(parts)


def fresh_scores(
    run: Run, dialogues: Sequence[Sequence[Message]], where: str | None = None
) -> tuple[Judged, pl.DataFrame]:
    """Have dialogues scored by the judge as it is now.

    Args:
        run: whose judge.
        dialogues: in chat format.
        where: path of the store that takes the replies, below the workspace; default: the judge's own.

    Returns:
        The scores, and the lines of the usage log about them.

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


def score_unbilled(
    dialogues: Sequence[Sequence[Message]], config: JudgeConfig, spec: JudgeSpec, max_variance: float
) -> Judged:
    """Score dialogues with the local rubric, in memory; equal ones are read once.

    A store guards what was paid for, with several commits a sample. Of the local rubric there is nothing to guard: it
    says the same of the same dialogue however often it is asked, so all samples of a dialogue are its one reply.

    Args:
        dialogues: chat messages of each.
        config: `judge`: how many samples a dialogue has.
        spec: whose dimensions are graded.
        max_variance: `gates.stability.max_variance`.

    Raises:
        RowError: when one of them is no dialogue.
    """
    _check_dialogues(dialogues)
    names = [dialogue_sha256(messages) for messages in dialogues]
    version, wanted, got = rubric.version(), [], {}
    for name, messages in dict(zip(names, dialogues, strict=True)).items():
        text = rubric.reply_to(messages)
        try:
            result = SampleResult(read_scores(text, spec.dimensions), AttemptOutcome.OK, "", version, text)
        except BadReplyError as error:
            result = SampleResult(None, AttemptOutcome.BAD_REPLY, f"the reply {error}", version, text)
        for sample in range(config.samples):
            wanted.append(SampleRequest(f"{name}/{sample}", name, messages, sample))
            got[wanted[-1].key] = result
    return Judged(*tables(names, wanted, got, config, spec, max_variance), run_id=uuid.uuid4().hex)


def _check_dialogues(dialogues: Sequence[Sequence[Message]]) -> None:
    for place, messages in enumerate(dialogues, 1):
        if fault := misfit(list(messages)):
            raise RowError(f"dialogue {place} of {len(dialogues)} cannot be judged: {fault}; nothing was asked")
