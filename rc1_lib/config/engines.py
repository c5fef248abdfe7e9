"""The engines and strategies that a configuration can name: where each is, and what it learns from.

A new engine is a module and one line in `ENGINES`. This table imports none of them, so that a configuration can be
checked without loading torch; `rc1_lib.training.registry` makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class LearnsFrom(StrEnum):
    """What the batches of an engine or a strategy hold."""

    EPISODES = "episodes"
    """Episodes that the policy plays itself: a run of RC1 (`configs/local.yaml`)."""
    GROUPS = "groups"
    """Episodes too, several of every prompt, to be compared with each other (`configs/grpo_local.yaml`)."""
    DEMONSTRATIONS = "demonstrations"
    """The pool's own dialogues: supervised training in a run of RC1 (`configs/sft_local.yaml`)."""
    ROWS = "rows"
    """Rows with labels: supervised training (`configs/train_local.yaml`), and the warm start."""


@dataclass(frozen=True, slots=True)
class Learner:
    """An engine or a strategy.

    Attributes:
        place: the module and the class in it, as `package.module:Class`.
        learns_from: what it takes.
        update: of an engine of a run: the section of `training` that holds its update's settings.
        head_by: of an engine whose loss reads the head's own weights and no adapter beside them: one that learns it.
        beta: whether `kl_coef` is the beta of its loss (DPO), at 0 of which nothing is learned.
        of_rows: of an engine of a run: where the one of the same name is that learns from rows with labels; "" where
            there is none.
    """

    place: str
    learns_from: LearnsFrom
    update: str = "ppo"
    head_by: str = ""
    beta: bool = False
    of_rows: str = ""

    @property
    def kinds(self) -> tuple[LearnsFrom, ...]:
        """All that it takes: what its place does, and rows with labels where another of its name does."""
        return (self.learns_from, LearnsFrom.ROWS) if self.of_rows else (self.learns_from,)

    def place_for(self, kinds: Sequence[LearnsFrom]) -> str:
        """The class that takes one of `kinds`; its own place where both do."""
        return self.place if self.learns_from in kinds or not self.of_rows else self.of_rows

    def refusal(self, targets: Sequence[str], key: str, kl_coef: float | None = None) -> str:
        """What this engine cannot use of a configuration that asks for it, in a sentence; "" where it can use all.

        Args:
            targets: names of the layers that get an adapter; none without one.
            key: of the configuration, where they stand.
            kl_coef: the price of the KL at the start; None where there is none.
        """
        if self.head_by and adapts_head(targets):
            return (
                f"{key}: found {HEAD}, whose adapter TRL's loss leaves out, so it would never be learned; leave it "
                f"out, or take {self.head_by}"
            )
        if self.beta and kl_coef == 0:
            return "kl_coef: found 0, but it is DPO's beta, and at 0 nothing is learned; write 0.1"
        return ""


HEAD = "lm_head"
"""The name that transformers gives a causal model's last layer."""


def adapts_head(targets: Sequence[str]) -> bool:
    """Whether one of the layers that get an adapter, by their names, is the last one."""
    return any(target.rpartition(".")[2] == HEAD for target in targets)


ENGINES: dict[str, Learner] = {
    "torch_ppo": Learner("rc1_lib.training.engines.torch_ppo:TorchPPO", LearnsFrom.EPISODES),
    "torch_grpo": Learner("rc1_lib.training.engines.torch_grpo:TorchGRPO", LearnsFrom.GROUPS, "grpo"),
    "trl_grpo": Learner("rc1_lib.training.engines.trl_grpo:TrlGRPO", LearnsFrom.GROUPS, "trl_grpo", "torch_grpo"),
    "torch_dpo": Learner("rc1_lib.training.engines.torch_dpo:TorchDPO", LearnsFrom.GROUPS, "dpo", beta=True),
    "trl_dpo": Learner("rc1_lib.training.engines.trl_dpo:TrlDPO", LearnsFrom.GROUPS, "trl_dpo", "torch_dpo", beta=True),
    "pure_pt_sft": Learner(
        "rc1_lib.training.engines.pure_pt_demonstrations:PurePtDemonstrations",
        LearnsFrom.DEMONSTRATIONS,
        "sft",
        of_rows="rc1_lib.training.engines.pure_pt_sft:PurePtSFT",
    ),
    "trl_sft": Learner(
        "rc1_lib.training.engines.trl_demonstrations:TrlDemonstrations",
        LearnsFrom.DEMONSTRATIONS,
        "sft",
        head_by="pure_pt_sft",
        of_rows="rc1_lib.training.engines.trl_sft:TrlSFT",
    ),
}
STRATEGIES: dict[str, Learner] = {
    "ppo": Learner("rc1_lib.training.strategies.ppo:PPO", LearnsFrom.EPISODES),
    "groups": Learner("rc1_lib.training.strategies.groups:Groups", LearnsFrom.GROUPS),
    "demonstrations": Learner("rc1_lib.training.strategies.demonstrations:Demonstrations", LearnsFrom.DEMONSTRATIONS),
    "sft": Learner("rc1_lib.training.strategies.sft:SFT", LearnsFrom.ROWS),
}
OFFLINE = {"gguf": "llama.cpp plays what was trained already (rc1 evaluate --engine gguf) and cannot learn"}
"""What plays policies in an evaluation alone -> why no run can be trained by it."""
PLAYED = (LearnsFrom.EPISODES, LearnsFrom.GROUPS)
"""What the policy plays itself."""
OF_RUNS = (*PLAYED, LearnsFrom.DEMONSTRATIONS)
"""What a run of RC1 learns from; rows with labels are the small configuration's."""
ControlKind = Literal["random", "constant"]
"""What episodes may be worth in a control (`rc1_lib.training.control`), where nothing can be learned."""
ALIASES = {"trl_ppo": "torch_ppo"}
"""Engines' names from before TRL gave up PPO."""


def own_name(engine: str) -> str:
    """What the engine is registered as, where `engine` may be another name for it."""
    return ALIASES.get(engine, engine)


def names_of(learners: Mapping[str, Learner], *kinds: LearnsFrom) -> list[str]:
    """The names, sorted, of the learners that learn from one of `kinds` (from anything when none is given).

    Other names of an engine are among them.
    """
    own = [name for name, learner in learners.items() if not kinds or {*kinds} & {*learner.kinds}]
    return sorted([*own, *(alias for alias, name in ALIASES.items() if learners is ENGINES and name in own)])
