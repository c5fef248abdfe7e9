"""Episodes that a GGUF file plays in llama.cpp: the dialogue world and its bounds are those of the rollouts."""

from __future__ import annotations

from collections.abc import Sequence

from rc1_lib.errors import RC1Error
from rc1_lib.records import MeasuredRow
from rc1_lib.training.handover.llama_cpp import LlamaCpp
from rc1_lib.training.play import Playground
from rc1_lib.training.rollout.running_episode import RunningEpisode
from rc1_lib.training.rollout.trajectory import Trajectory

_SEEDS = 2**32


class LlamaPlayer:
    """Plays episodes one after the other, by token ids alone; a `Plays`."""

    def __init__(self, llama: LlamaCpp, playground: Playground, context: int) -> None:
        """Plays with what `llama` has loaded.

        Args:
            llama: holds the file.
            playground: worlds, bounds and chat format of the policy.
            context: tokens that the model can read.
        """
        self._llama, self._playground, self._context = llama, playground, context

    def play(
        self, rows: Sequence[MeasuredRow], keys: Sequence[str], *, temperature: float, seed: int, iteration: int
    ) -> list[Trajectory]:
        """Play every row once.

        What is sampled hangs on seed, iteration and key alone, but on other random numbers than PyTorch's.

        Args:
            rows: of the pool's schema.
            keys: name each episode's random numbers.
            temperature: 0 is greedy.
            seed: with `iteration` and the key it decides what is sampled.
            iteration: of the training.
        """
        sampling = self._playground.sampling(temperature, seed, iteration)
        form = self._playground.form
        return [
            self._play(RunningEpisode(self._playground.start(row, key), form, sampling, self._context), temperature)
            for row, key in zip(rows, keys, strict=True)
        ]

    def _play(self, episode: RunningEpisode, temperature: float) -> Trajectory:
        read = list(episode.prompt)
        while not episode.over:
            said = self._llama.sampled(read, episode.room, temperature, int(episode.uniform * _SEEDS))
            if not said.ids:
                raise RC1Error(f"llama.cpp said nothing after {len(read)} tokens; expected at least one")
            for token, logprob in zip(said.ids, said.logprobs, strict=True):
                if episode.over:  # cut by a budget that is smaller than what was asked for
                    break
                episode.take(token, logprob)
            read += episode.feed(episode.known)
        return episode.trajectory()
