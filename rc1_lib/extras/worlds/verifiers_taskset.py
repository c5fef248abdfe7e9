"""An exported environment as a taskset of verifiers (extra `verifiers`), with the harness that plays it.

The harness is the dialogue loop: it sends the conversation to the model, and the model's messages to our environment,
whose simulated user and tools answer. The reward is computed from the trace alone, by replaying the model's messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from openai import AsyncOpenAI

from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.environment.rewards import RewardSettings
from rc1_lib.environment.turn import Limits
from rc1_lib.extras.worlds.served import ServedWorld, opened, reference_turns, replayed, take
from rc1_lib.extras.worlds.spec import WorldSpec
from rc1_lib.records import MeasuredRow, Message
from rc1_lib.training.tool_schemas import TOOLS

_RAN = vf.ProgramResult(exit_code=0, stdout="", stderr="")


class WorldData(vf.TaskData):  # type: ignore[misc]
    """A row and the settings of its environment, so that a trace can be scored without the folder."""

    row: dict[str, Any]
    limits: dict[str, Any]
    prices: dict[str, Any]
    rows_sha256: str

    @property
    def measured(self) -> MeasuredRow:
        """The row."""
        return self.row  # type: ignore[return-value]

    @property
    def spec(self) -> WorldSpec:
        """Limits and reward settings."""
        return WorldSpec(self.rows_sha256, Limits(**self.limits), RewardSettings(**self.prices))


class WorldTask(vf.Task[WorldData]):  # type: ignore[misc]
    """A question of the world."""

    @vf.reward(weight=1.0)  # type: ignore[untyped-decorator]
    async def dialogue_reward(self, trace: vf.Trace) -> float:
        """The environment's reward for the model's messages; 0 without any."""
        return _scored(self.data, trace)["reward"]

    @vf.metric  # type: ignore[untyped-decorator]
    async def outcome(self, trace: vf.Trace) -> dict[str, float]:
        """Whether it was solved, and how often the user was asked."""
        scored = _scored(self.data, trace)
        return {name: scored[name] for name in ("solved", "asked")}

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Whether asking for the missing piece (if there is one) and giving the known answer solves the row."""
        row = self.data.measured
        return replayed(self.data.spec, row, reference_turns(row))[0].outcome().solved


class WorldConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Which environment."""

    folder: Path = Path("outputs/rc1_world")
    """A folder that `rc1 world export` wrote."""


class WorldTaskset(vf.Taskset[WorldTask, WorldConfig]):  # type: ignore[misc]
    """The rows of an exported environment."""

    def load(self) -> Iterator[WorldTask]:
        """Yield one task per row, in the folder's order."""
        world = ServedWorld.read(self.config.folder)
        for place in range(len(world.lines)):
            yield WorldTask(_data(world, world.row(place)), self.config.task)


class WorldHarnessConfig(vf.HarnessConfig):  # type: ignore[misc]
    """The harness has no settings."""


class WorldHarness(vf.Harness[WorldHarnessConfig]):  # type: ignore[misc]
    """The dialogue loop, in this process: it launches no program, and verifiers sees every model call."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: WorldData,
    ) -> vf.ProgramResult:
        """Play one episode to its end."""
        episode = opened(data.spec, data.measured)
        said: list[Any] = list(episode.messages)
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0) as client:
            while episode.status is EpisodeStatus.RUNNING:
                reply = await client.chat.completions.create(model=ctx.model, messages=said, tools=list(TOOLS))  # type: ignore[arg-type]
                choice = reply.choices[0]
                message = choice.message.model_dump(exclude_none=True)
                cut = choice.finish_reason == "length"
                answers = take(episode, message.get("content"), message.get("tool_calls"), cut=cut)
                said += [message, *_answered(message, answers)]
        return _RAN


def _data(world: ServedWorld, row: MeasuredRow) -> WorldData:
    spec = world.spec
    return WorldData(
        id=row["id"],
        name=row["id"],
        prompt=[dict(message) for message in opened(spec, row).messages],
        row=dict(row),
        limits=asdict(spec.limits),
        prices=asdict(spec.reward),
        rows_sha256=spec.rows_sha256,
    )


def _scored(data: WorldData, trace: vf.Trace) -> dict[str, float]:
    turns = [_turn(message.model_dump(exclude_none=True)) for message in trace.assistant_messages]
    episode, terms = replayed(data.spec, data.measured, turns, cut=trace.is_truncated)
    outcome = episode.outcome()
    return {"reward": terms.total, "solved": float(outcome.solved), "asked": float(outcome.asked)}


def _turn(message: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a message of a trace, which has flat calls, to the form of our environment."""
    calls = [{"function": call} for call in message.get("tool_calls") or ()]
    return {"content": message.get("content"), "tool_calls": calls}


def _answered(message: Mapping[str, Any], answers: Sequence[Message]) -> list[dict[str, Any]]:
    """The environment's answers with the model's call ids; a note on a malformed turn answers all of its calls."""
    ids = [call["id"] for call in message.get("tool_calls") or ()]
    if not ids:
        return [{"role": "user", "content": answer["content"]} for answer in answers]
    texts = [answer["content"] for answer in answers]
    if len(texts) == 1:
        texts *= len(ids)
    answered = zip(ids, texts, strict=True) if texts else ()  # a turn that ends the episode may have no answer
    return [{"role": "tool", "tool_call_id": id_, "content": text} for id_, text in answered]
