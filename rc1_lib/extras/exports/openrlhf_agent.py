"""RC1's world as an agent of OpenRLHF (0.11); imported by OpenRLHF through `rc1_openrlhf.py` of an export."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import torch
from openrlhf.utils.agent import AgentExecutorBase, AgentInstanceBase, MultiTurnAgentExecutor

from rc1_lib.environment.episode import Episode
from rc1_lib.environment.markers import THINK
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.extras.exports.reward import read_settings, row_of
from rc1_lib.extras.exports.spec import WorldSpec
from rc1_lib.records import MeasuredRow
from rc1_lib.training.chat_format import ChatFormat

_form_of = lru_cache(maxsize=4)(ChatFormat)
"""A tokenizer's chat template, analysed once and not for every episode."""


class _Engine:
    """OpenRLHF's engine; it remembers whether the last turn was cut off, which an agent's step is not told."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.cut = False

    async def generate(self, *arguments: Any, **settings: Any) -> Any:
        output = await self._engine.generate(*arguments, **settings)
        self.cut = output.outputs[0].finish_reason == "length"
        return output


class WorldAgent(AgentInstanceBase):  # type: ignore[misc]
    """One episode; the step that ends it pays the whole reward, every other one 0."""

    def __init__(self, spec: WorldSpec, tokenizer: Any, engine: _Engine) -> None:
        self._spec, self._form, self._engine = spec, _form_of(tokenizer), engine
        self._row: MeasuredRow
        self._episode: Episode

    async def reset(self, states: dict[str, Any], **others: Any) -> dict[str, Any]:
        """Open the row in the label; the prompt is the data set's."""
        self._row = cast("MeasuredRow", row_of(states["label"], "label"))
        self._episode = self._spec.opened(self._row)
        return states

    async def step(self, state_dict: dict[str, Any], **others: Any) -> dict[str, Any]:
        """Take a turn of the model."""
        said = THINK * self._form.opens_thoughts + state_dict["action_text"]  # as in RC1's own rollouts
        answers = self._episode.say(said, cut=self._engine.cut)
        done = self._episode.status is not EpisodeStatus.RUNNING
        reward = self._spec.paid(self._row, self._episode) if done else 0.0
        outcome = self._episode.outcome()
        return {
            "rewards": torch.tensor(reward, dtype=torch.float64),
            "environment_feedback": "" if done else self._form.decode(self._form.observation_ids(answers)),
            "done": done,
            "extra_logs": {"solved": float(outcome.solved), "asked": float(outcome.asked)},
        }


def agent_executor(folder: Path) -> type[AgentExecutorBase]:
    """Return the class that OpenRLHF looks for under the name `AgentExecutor`.

    Raises:
        RC1Error: if `folder` has no limits and prices.
    """
    spec = read_settings(folder)

    class AgentExecutor(AgentExecutorBase):  # type: ignore[misc]
        """OpenRLHF's own loop, with an episode of its own for each prompt."""

        async def execute(
            self, prompt: Any, label: Any, sampling_params: Any, max_length: int, hf_tokenizer: Any, llm_engine: Any,
            images: Any = None,
        ) -> Any:  # fmt: skip
            engine = _Engine(llm_engine)

            class Played(WorldAgent):
                def __init__(self) -> None:
                    super().__init__(spec, hf_tokenizer, engine)

            own = MultiTurnAgentExecutor(Played)
            return await own.execute(prompt, label, sampling_params, max_length, hf_tokenizer, engine, images)

    return AgentExecutor
