"""The judge: K samples of every dialogue, from the store if they still count, otherwise from the provider."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl

from rc1_lib.config.addresses import KEY_VARIABLE
from rc1_lib.config.judge import STORE_PATH
from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.errors import ConfigError, RC1Error, RowError
from rc1_lib.judge import rubric
from rc1_lib.judge.budget import Spending, known_usd, whole_budget
from rc1_lib.judge.calls import AttemptOutcome, Line, Reply, is_made_up
from rc1_lib.judge.client import BAD_REPLY_ATTEMPTS, JudgeClient, Stopped, replay_line
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
MODEL_CHECK_S = 24 * 3600.0
"""Stored scores count only if the provider has answered as the same model within this time."""
_REPORT_EVERY_S = 1.0
_LOG_EVERY_S = 10.0
_BATCH = 500
"""Replays or free scores written in one transaction."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A configured judge: provider, instructions, and the store of its replies."""

    config: JudgeConfig
    spec: JudgeSpec
    store: Store
    profile: str
    max_variance: float
    spending: Spending | None = None
    """Shared by scorings that share one budget; None gives each scoring the whole budget."""
    stage: str = STAGE
    """The name that progress is reported under."""

    def score(self, dialogues: Sequence[Sequence[Message]], *, fresh: bool = False) -> Judged:
        """Score dialogues, asking about equal dialogues once.

        A failing provider, a spent budget or an interruption ends the run early. Paid replies are kept, and
        `Judged.stopped` says why the run ended. Failed samples never hold a number.

        Args:
            dialogues: chat messages of each dialogue.
            fresh: ask the provider for every sample even if it is stored, as a probe does.

        Raises:
            ConfigError: if the provider cannot be opened with these settings.
            RowError: if one of them is not a dialogue; nothing was asked then.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.score_async(dialogues, fresh=fresh))
        raise RC1Error("Judge.score was called on a running event loop; await Judge.score_async there instead")

    async def score_async(self, dialogues: Sequence[Sequence[Message]], *, fresh: bool = False) -> Judged:
        """Score dialogues on a running event loop; cancelling it closes all connections and frees all slots."""
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
        """Get samples of dialogues that the store knows; also used to ask again for bad replies."""
        config = self.config
        spending = whole_budget(config) if self.spending is None else self.spending
        client = JudgeClient(config, self.spec, self.store, spending, only_real=self.profile == "prod")
        spent, called = spending.usd, spending.calls
        known = self.store.model_of(endpoint(self.config))
        if known is not None and client.only_real and is_made_up(known[0]):
            known = None  # profile prod refuses made-up scores, stored ones too
        if known is not None:
            client.model = known[0]
        run = _SamplingRun(client, len(wanted), self.stage)
        try:
            live = list(wanted) if known is None or fresh else await self._replay(client, run, wanted)
            await run.ask(live, fresh=fresh)
        finally:
            await client.aclose()
        return Judged(
            *tables(names, wanted, run.got, config, self.spec, self.max_variance), run_id=self.store.run_id,
            stopped=client.stop, usd=spending.usd - spent, calls=spending.calls - called,
            traffic=client.limiter.stats(),
        )  # fmt: skip

    async def _replay(
        self, client: JudgeClient, run: _SamplingRun, wanted: Sequence[SampleRequest]
    ) -> list[SampleRequest]:
        """Replay stored replies that still count, and return the requests that remain.

        Only replies of the model version that answers today count. So samples that are not stored are asked first. If
        all are stored and the version was last checked long ago, one sample is asked again to check it.
        """
        stored = self._find(client, wanted)
        client.stored = sum(reply.scores is not None for reply in stored.values())
        await run.ask([request for request in wanted if request.key not in stored], fresh=False)
        left = [request for request in wanted if request.key in stored]
        seen = self.store.model_of(endpoint(self.config))
        if left and seen is not None and self._is_old(seen[1]) and self.config.provider in LIVE:
            asked = next((one for one in left if stored[one.key].scores is not None), left[0])
            await run.ask([asked], fresh=True)
            checked = self.store.model_of(endpoint(self.config))
            if not client.stop and (checked is None or checked[1] <= seen[1]):
                client.stop = (
                    "the provider did not answer, so RC1 cannot tell whether the stored scores are still those of its "
                    "current model; run again when it answers"
                )
                return []
            if asked.key in run.got and run.got[asked.key].scores is not None:
                left.remove(asked)  # otherwise the stored reply still counts, unless another version answered
        return run.replay(left, self._find(client, left))

    def _find(self, client: JudgeClient, wanted: Sequence[SampleRequest]) -> dict[str, Reply]:
        keys = [request.key for request in wanted]
        return self.store.find(keys, client.model, bad_attempts=BAD_REPLY_ATTEMPTS)

    def _is_old(self, seen: float) -> bool:
        return self.store.now() - seen > MODEL_CHECK_S

    def key(self, dialogue: str, sample: int) -> str:
        """Hash what is asked for one sample, without the model version, which is known only from the reply."""
        return _key(self._asked(), dialogue, sample)

    def _asked(self) -> dict[str, Any]:
        """Return what all samples asked of this judge have in common."""
        return {
            "spec": self.spec.sha256,
            "endpoint": endpoint(self.config),
            **request_settings(self.config),
        }


def _key(asked: dict[str, Any], dialogue: str, sample: int) -> str:
    return sha256_json({**asked, "dialogue": dialogue, "sample": sample})


def check_judge(run: Run) -> None:
    """Check that the judge can be asked at all, without writing or sending anything.

    Raises:
        ConfigError: if its provider is unknown, or its model, key, address or instructions are missing or unusable.
    """
    read_spec(run)
    if run.config.judge.provider in LIVE:
        check_model(run)
    asyncio.run(open_provider(run.config.judge).aclose())


def open_store(run: Run, where: str | None = None) -> Store:
    """Open the run's store of replies and usage log; the caller closes it.

    Args:
        run: gives the workspace and the settings.
        where: path of a separate store, relative to the workspace, for calls that must stay out of the gates' usage
            log; default: the run's own store.
    """
    path = run.workspace.path(where or STORE_PATH)
    path.parent.mkdir(parents=True, exist_ok=True)
    return Store(path, ttl_days=run.config.judge.store.ttl_days)


@contextmanager
def existing_store(run: Run) -> Iterator[Store]:
    """Open the store for a gate that reads its log; raises `RC1Error` if no call has been made yet."""
    path = run.workspace.path(STORE_PATH)
    if not path.is_file():
        raise RC1Error(f"{path}: there is no usage log yet, so there are no calls to check; run rc1 probe-scorer first")
    with open_store(run) as store:
        yield store


def open_judge(run: Run, store: Store) -> Judge:
    """Return the run's judge over an open store.

    Raises:
        ConfigError: if its instructions are missing or damaged, or its address holds a secret.
    """
    config = run.config.judge
    if config.base_url is not None and mask(config.base_url, secrets()) != config.base_url:
        raise ConfigError(f"judge.base_url contains a secret; move it to the environment variable {KEY_VARIABLE}")
    return Judge(config, read_spec(run), store, run.config.profile, run.config.gates.stability.max_variance)


class _SamplingRun:
    """One run's samples: the results so far, and the workers that ask for the rest."""

    def __init__(self, client: JudgeClient, total: int, stage: str) -> None:
        self.client, self.total, self.stage = client, total, stage
        self.got: dict[str, SampleResult] = {}
        self._begun = time.monotonic()
        self._shown = self._logged = 0.0
        self._live = 0

    def replay(self, wanted: Sequence[SampleRequest], found: dict[str, Reply]) -> list[SampleRequest]:
        """Use the stored replies, log their scores as replays, and return the requests that remain."""
        lines: list[Line] = []
        for request in wanted:
            if request.key in found:
                start = time.perf_counter()
                reply = found[request.key]
                self.got[request.key] = SampleResult.of(reply)
                if reply.scores is not None:
                    line = self.client.line(request)
                    lines.append(replay_line(line, reply, 1000 * (time.perf_counter() - start)))
        for first in range(0, len(lines), _BATCH):
            self.client.store.log_replays(lines[first : first + _BATCH])
        self._report()
        return [request for request in wanted if request.key not in found]

    async def ask(self, wanted: Sequence[SampleRequest], *, fresh: bool) -> None:
        """Ask for all requests, with as many workers as the limiter allows requests in flight."""
        if not wanted:
            return
        if self.client.config.provider in LIVE:
            await self._run_workers(wanted, fresh)
        else:
            await self._ask_unbilled(wanted, fresh)
        self._report(last=True)

    async def _ask_unbilled(self, wanted: Sequence[SampleRequest], fresh: bool) -> None:
        """Ask a judge that does not bill, with one store transaction per batch."""
        for first in range(0, len(wanted), _BATCH):
            batch = wanted[first : first + _BATCH]
            try:
                with self.client.store.transaction():
                    await self._run_workers(batch, fresh)
            except RC1Error as error:
                for request in batch:
                    self.got.pop(request.key, None)  # the transaction was rolled back
                self.client.halt(str(error))
            if self.client.stop:
                return

    async def _run_workers(self, wanted: Sequence[SampleRequest], fresh: bool) -> None:
        queue = deque(wanted)
        workers = min(len(queue), self.client.config.limits.concurrency[1])
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(self._worker(queue, fresh))
        except* Stopped:
            pass  # client.stop has the reason; the task group has waited for the other workers

    async def _worker(self, queue: deque[SampleRequest], fresh: bool) -> None:
        while queue and not self.client.stop:
            request = queue.popleft()
            try:
                self.got[request.key] = await self.client.get(request, fresh=fresh)
            except Stopped:
                return
            self._live += 1
            self._report()

    def _report(self, last: bool = False) -> None:
        now = time.monotonic()
        done = len(self.got)
        if last or done == self.total or now - self._shown >= _REPORT_EVERY_S:
            self._shown = now
            usd = known_usd(self.client.config, self.client.spending.usd, self.client.spending.calls)
            note = traffic_note(self.client.limiter.stats(), usd, self._eta())
            report_progress(self.stage, done, self.total, note)
            if last or now - self._logged >= _LOG_EVERY_S:
                self._logged = now
                _LOG.info("%d/%d %s", done, self.total, note)

    def _eta(self) -> float | None:
        """Return the seconds to go at the pace so far; None before the first answer."""
        if not self._live:
            return None
        return (self.total - len(self.got)) * (time.monotonic() - self._begun) / self._live


UNKNOWN_COST = "cost unknown: set judge.prices"


def traffic_note(traffic: RecentRates, usd: float | None, eta_s: float | None = None) -> str:
    """Format progress: `rps 4.1, 429_rate 0.3 %, avg_latency 210 ms, p95 400 ms, in_flight 5, $0.0123, 40 s to go`.

    Args:
        traffic: figures of the limiter.
        usd: cost so far in USD; None if unknown.
        eta_s: seconds to go; None if unknown.
    """
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
    """Have the judge score dialogues now, ignoring stored replies.

    Args:
        dialogues: in chat format.
        where: path of the store for the replies, relative to the workspace; default: the judge's own.

    Returns:
        The scores, and their lines of the usage log.

    Raises:
        RC1Error: if the judge cannot be asked, or stopped early.
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
    """Score dialogues with the local rubric in memory, reading equal ones once.

    A store protects paid replies, at several commits per sample. The local rubric needs none: it is free and
    deterministic, so all samples of a dialogue are its one reply.

    Args:
        dialogues: chat messages of each dialogue.
        config: `judge`, for the number of samples.
        spec: gives the dimensions to grade.
        max_variance: `gates.stability.max_variance`.

    Raises:
        RowError: if one of them is not a dialogue.
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
