"""Play episodes with a vLLM server. Environment and limits are those of RC1's own rollouts.

Many dialogues are in progress at once, each requesting its next turn as token ids, so nothing is ever tokenized again.
How the server batches them decides the last bits of its probabilities, so two runs may sample different tokens. Before
the first request the server must prove that it serves the policy to train.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from rc1_lib.config.episodes import VLLM, Parity
from rc1_lib.reward.weighted_judge import finish
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.policy import Policy
from rc1_lib.training.rollout.roll_out import STAGE
from rc1_lib.training.rollout.trajectory import RolloutSampling, RunningEpisode, Start, Trajectory
from rc1_lib.training.updates.losses import FAR
from rc1_lib.training.updates.metrics import distance
from rc1_lib.training.vllm.adapter import ServedAdapter
from rc1_lib.training.vllm.server import (
    Access,
    SampledTurn,
    Served,
    Turn,
    VLLMError,
    VLLMServer,
    access_of,
    connected,
    quoted,
)

PROBES, PROBE_TOKENS = 8, 32
"""Number of continuations of a fixed prompt to compare, and tokens of each."""
READ_AGAIN = 8
"""Most episodes of a rollout that are checked if nothing is learned from them."""
PROBE = "Mia has three boxes with a few pencils each. How many pencils are there altogether?"
_SEEDS = 2**53
"""Factor that turns a float in [0, 1) into a seed without losing bits."""

_PARTING_S = 10.0
"""Most seconds that the end of a run waits for a server, which may be the reason why it ends."""

Done = TypeVar("Done")
Read = Callable[[Tensor, Tensor, float, bool], tuple[Tensor, Tensor]]
"""Computes log-probabilities (N,) of the chosen tokens (bool, (B, T)) of ids (B, T), and of the most likely tokens at
the same places, at a temperature, with the current policy or, if the last argument is true, the initial one."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the served policy must support.

    Attributes:
        needed: tokens of the longest possible dialogue.
        rows: dialogues in progress at once.
    """

    context: int
    needed: int
    vocabulary: int
    rows: int


class VLLMSampler:
    """Plays episodes with tokens from a server."""

    def __init__(self, settings: VLLM, shape: Shape, parity: Parity, read: Read) -> None:
        """Keep the settings. No request is sent yet.

        Args:
            settings: address of the server, and how to use it.
            parity: bounds of the distance between the server's probabilities and ours.
            read: computes ours.

        Raises:
            ConfigError: if the key cannot be sent in a header.
        """
        self._access: Access = access_of(settings)
        self._shape, self._parity, self._read = shape, parity, read
        self._adapter = ServedAdapter(settings.adapters)
        self._served: Served | None = None
        self._tokens = self._over = 0

    def play(
        self, policy: Policy, chat: ChatFormat, starts: Sequence[Start], sampling: RolloutSampling, *, start: bool
    ) -> list[Trajectory]:
        """Play every episode to its end.

        Args:
            policy: its adapter is loaded into the server.
            starts: episodes that have not begun.
            sampling: temperature, limits and seeds.
            start: play with the initial policy, without the adapter.

        Returns:
            One trajectory for each start, in the same order, without hidden states.

        Raises:
            VLLMError: if the server is gone, serves another policy, or sends an invalid answer.
            RolloutError: if a prompt does not fit into the context.
        """
        episodes = [RunningEpisode(each, chat, sampling, self._shape.context) for each in starts]

        async def played(server: VLLMServer) -> None:
            served = await self._checked(server, chat, sampling)
            name = served.name if start else await self._adapter.load_current(server, policy)
            await self._play(server, name, episodes, chat.end_id, sampling.temperature)

        self._run(played, self._access)
        return [episode.trajectory() for episode in episodes]

    def check(self, played: Sequence[Trajectory], temperature: float, *, start: bool) -> None:
        """Recompute some episodes' log-probabilities, because an answer does not show whether the adapter was used.

        Args:
            played: by `play`.
            temperature: sampling temperature; with 0 the log-probabilities are those of temperature 1.
            start: whether they were played with the initial policy.

        Raises:
            VLLMError: if they come from another policy.
        """
        if not played:
            return
        sampled, read, best = list[Tensor](), list[Tensor](), list[Tensor]()
        chosen = played[:: math.ceil(len(played) / READ_AGAIN)]
        for one in chosen:
            own_1T = torch.tensor([one.action_mask])
            sampled.append(torch.tensor(one.logprobs)[own_1T[0]])
            read_N, best_N = self._read(torch.tensor([one.ids]), own_1T, temperature or 1.0, start)
            read.append(read_N.cpu())
            best.append(best_N.cpu())
        found = distance(torch.cat(sampled), torch.cat(read))
        if not self._near(found):
            raise VLLMError(
                f"the vLLM server at {self._access.host} does not play the requested policy: in {len(chosen)} episodes "
                f"that were checked, {self._far_off(found)}; it ignores the adapter or has an old one: restart it"
            )
        if temperature == 0:
            self._check_greedy(torch.cat(read), torch.cat(best))

    def close(self) -> None:
        """Unload the adapter, if the server still answers, and remove the written files."""
        brief = replace(self._access, retries=0, timeout_s=min(self._access.timeout_s, _PARTING_S))
        try:
            self._run(self._adapter.unload, brief)
        except VLLMError:
            pass  # a server that is gone needs no unloading
        finally:
            self._adapter.close()

    def _run(self, work: Callable[[VLLMServer], Coroutine[Any, Any, Done]], access: Access) -> Done:
        async def all_of_it() -> Done:
            async with connected(access) as server:
                return await work(server)

        return finish(all_of_it)

    async def _play(
        self, server: VLLMServer, name: str, episodes: Sequence[RunningEpisode], end_id: int, temperature: float
    ) -> None:
        began, self._tokens, self._over = time.monotonic(), 0, 0
        free = asyncio.Semaphore(self._shape.rows)

        async def play(episode: RunningEpisode) -> None:
            read = list(episode.prompt)
            async with free:
                while not episode.over:
                    turn = Turn(read, episode.room, end_id, temperature, int(episode.uniform * _SEEDS))
                    said = await server.sample(name, turn, self._shape.vocabulary)
                    for token, logprob in zip(said.ids, said.logprobs, strict=True):
                        if episode.over:  # the episode's limit was below the number of tokens requested
                            break
                        episode.take(token, logprob)
                    self._tokens += len(said.ids)
                    read += episode.feed(episode.known)
            self._over += 1
            rate = self._tokens / max(time.monotonic() - began, 1e-9)
            report_progress(STAGE, self._over, len(episodes), f"{rate:,.0f} tokens sampled a second")

        await _all(*(play(episode) for episode in episodes))

    async def _checked(self, server: VLLMServer, chat: ChatFormat, sampling: RolloutSampling) -> Served:
        """Return what the server serves, after checking that it is the initial policy."""
        if self._served is None:
            served, host = await server.served(), self._access.host
            if served.context < self._shape.needed:
                raise VLLMError(
                    f"the vLLM server at {host} has a context of {served.context} tokens, but a dialogue may have "
                    f"{self._shape.needed}; start it with --max-model-len {self._shape.needed} or more"
                )
            prompt = chat.prompt_ids([{"role": "user", "content": PROBE}])
            # At temperature 0 both sides report log-probabilities of temperature 1.
            temperature = sampling.temperature or 1.0
            turns = [Turn(prompt, PROBE_TOKENS, None, temperature, seed) for seed in range(PROBES)]
            said = await _all(*(server.sample(served.name, turn, self._shape.vocabulary) for turn in turns))
            self._compare(served, prompt, said, temperature)
            # Answers do not show the sampling temperature, so greedy tokens are checked separately. The different seeds
            # expose a server that samples in spite of temperature 0.
            turns = [replace(turn, temperature=0.0) for turn in turns]
            likeliest = await _all(*(server.sample(served.name, turn, self._shape.vocabulary) for turn in turns))
            self._check_greedy(*self._read_probes(prompt, likeliest, 1.0))
            self._served = served
        return self._served

    def _read_probes(self, prompt: Sequence[int], said: Sequence[SampledTurn], at: float) -> tuple[Tensor, Tensor]:
        """Compute the initial policy's log-probabilities of continuations, and of the most likely tokens."""
        ids_BT = torch.tensor([[*prompt, *one.ids] for one in said])
        last_BT = (torch.arange(ids_BT.shape[1]) >= len(prompt)).expand_as(ids_BT)
        read_N, best_N = self._read(ids_BT, last_BT, at, True)
        return read_N.cpu(), best_N.cpu()

    def _check_greedy(self, read_N: Tensor, best_N: Tensor) -> None:
        """Check that tokens requested at temperature 0 are the most likely ones, as far as rounding allows.

        If the server's log-probabilities are off by up to a bound, it may choose a token that falls short of the most
        likely one by twice that. So the bounds are twice those of a log-probability.

        Raises:
            VLLMError: if they are not.
        """
        short_N = best_N - read_N
        mean, far = float(short_N.mean()), float((short_N > 2 * FAR).float().mean())
        if mean <= 2 * self._parity.mean and far <= 2 * self._parity.far_share:
            return
        raise VLLMError(
            f"the vLLM server at {self._access.host} was asked for the most likely tokens (temperature 0), but its "
            f"tokens fall short of them by {mean:.2g} nats on average (at most {2 * self._parity.mean:g}, twice "
            f"training.parity.mean), and by more than {2 * FAR:g} at {far:.2%} of the tokens (at most "
            f"{2 * self._parity.far_share:.2%}, twice training.parity.far_share): it ignores the temperature, or "
            "returns other tokens than it samples; use a server that respects the temperature"
        )

    def _compare(self, served: Served, prompt: Sequence[int], said: Sequence[SampledTurn], temperature: float) -> None:
        theirs_N = torch.tensor([one.logprobs for one in said]).flatten()

        def apart(at: float) -> dict[str, float]:
            return distance(theirs_N, self._read_probes(prompt, said, at)[0])

        found = apart(temperature)
        if self._near(found):
            return
        host = self._access.host
        if temperature != 1.0 and self._near(apart(1.0)):
            raise VLLMError(
                f"the vLLM server at {host} reports log-probabilities of temperature 1, but samples at "
                f"{temperature:g}; start it with --logprobs-mode processed_logprobs"
            )
        raise VLLMError(
            f"the vLLM server at {host} serves '{quoted(served.root)}', which is not the initial policy of this "
            f"training: without an adapter {self._far_off(found)}; serve that policy, in a precision within the bounds"
        )

    def _far_off(self, found: dict[str, float]) -> str:
        return (
            f"|log p| differs by {found['policy/sampling_gap']:.2g} nats on average (at most {self._parity.mean:g}, "
            f"training.parity.mean), and by more than {FAR:g} at {found['policy/sampling_far']:.2%} of the tokens (at "
            f"most {self._parity.far_share:.2%}, training.parity.far_share)"
        )

    def _near(self, found: dict[str, float]) -> bool:
        return (
            found["policy/sampling_gap"] <= self._parity.mean and found["policy/sampling_far"] <= self._parity.far_share
        )


async def _all(*work: Coroutine[Any, Any, Done]) -> list[Done]:
    """Run all coroutines. The first error cancels the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
