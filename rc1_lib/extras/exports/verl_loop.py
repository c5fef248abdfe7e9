"""RC1's world as an agent loop of verl (0.9); imported by verl through `rc1_loop.yaml` of an export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from rc1_lib.environment.episode import Episode
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.extras.exports.reward import SAID, row_of
from rc1_lib.records import Row
from rc1_lib.training.tool_schemas import TOOLS


class WorldLoop(AgentLoopBase):  # type: ignore[misc]
    """The dialogue loop: verl samples the turns, RC1 reads and answers them; `compute_score` pays what was said."""

    def __init__(self, *arguments: Any, limits: Mapping[str, int], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._limits = Limits(**limits)

    async def run(self, sampling_params: dict[str, Any], **given: Any) -> AgentLoopOutput:
        """Play the episode of one row, whose columns are `given`."""
        row = row_of(given["extra_info"].get("row"), "extra_info.row")
        episode, messages = Episode(World(cast("Row", row)), self._limits), list(given["raw_prompt"])
        longest, request = self.rollout_config.response_length, uuid4().hex
        said: list[dict[str, Any]] = []
        mask: list[int] = []
        logprobs: list[float] | None = None
        cut = False
        ids = await self.ct_build_initial_tokens(messages, tools=list(TOOLS))
        while episode.status is EpisodeStatus.RUNNING and len(mask) < longest:
            output = await self.server_manager.generate(
                request_id=request, prompt_ids=ids, sampling_params=sampling_params
            )
            merged, mask, logprobs = await self.ct_merge_assistant_token(
                ids, output.token_ids, mask, logprobs, assistant_logprobs=output.log_probs or None
            )
            ids, cut = merged.token_ids, len(mask) >= longest
            ended = output.token_ids[-1:] == [self.tokenizer.eos_token_id]
            text = self.tokenizer.decode(output.token_ids[:-1] if ended else output.token_ids)
            said.append({"role": "assistant", "content": text})
            answers = episode.say(text, cut=cut)
            if episode.status is EpisodeStatus.RUNNING:
                before = [*messages, said[-1]]
                messages = [*before, *({"role": one["role"], "content": one["content"]} for one in answers)]
                merged, mask, logprobs = await self.ct_merge_context_msg(
                    before, messages, ids, mask, logprobs, tools=list(TOOLS)
                )
                ids = merged.token_ids
        return AgentLoopOutput(
            prompt_ids=ids[: len(ids) - len(mask)],
            response_ids=ids[len(ids) - len(mask) :][:longest],
            response_mask=mask[:longest],
            response_logprobs=logprobs[:longest] if logprobs else None,
            num_turns=2 * len(said),
            metrics=AgentLoopMetrics(),
            extra_fields={SAID: {"messages": said, "cut": cut}},  # not a list: verl puts these into arrays
        )
