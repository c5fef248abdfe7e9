"""The engines and strategies that a configuration can name: their classes, and what they learn from.

A new engine is a module and one line in `ENGINES`. The table imports none of them, so that a configuration can be
checked without loading torch; `rc1_lib.training.api` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class LearnsFrom(StrEnum):
    """What the batches of an engine or a strategy contain."""

    EPISODES = "episodes"
    """Episodes that the policy plays itself: a run of RC1 (`configs/local.yaml`), or its answers to rows of input and
    output (`configs/train_local.yaml`)."""
    GROUPS = "groups"
    """Several episodes of each prompt, which are compared with each other (`configs/grpo_local.yaml`)."""
    DEMONSTRATIONS = "demonstrations"
    """Existing dialogues: the pool's own in a run of RC1 (`configs/sft_local.yaml`), or rows of input and output
    (`configs/train_local.yaml`)."""


@dataclass(frozen=True, slots=True)
class Spec:
    """An engine or a strategy.

    Attributes:
        place: its class, as `package.module:Class`.
        learns_from: the kind of batches.
    """

    place: str
    learns_from: LearnsFrom


@dataclass(frozen=True, slots=True)
class EngineSpec(Spec):
    """An engine.

    Attributes:
        sections: the sections of `training` with its settings, for an engine of a run.
        trl: whether TRL computes the loss, which is DPO's: it ignores an adapter of the head, it needs training mode,
            and `kl_coef` is its beta.
    """

    sections: tuple[str, ...] = ("update",)
    trl: bool = False

    def refusal(self, targets: Sequence[str], kl_coef: float) -> str:
        """Return why this engine cannot use a configuration, in a sentence; "" if it can.

        Args:
            targets: `training.adapter.targets`.
            kl_coef: the initial KL coefficient.
        """
        if self.trl and adapts_head(targets):
            return (
                f"training.adapter.targets: found {HEAD}, but TRL's loss ignores its adapter, so it would never be "
                "trained; remove it"
            )
        if self.trl and kl_coef == 0:
            return "kl_coef: found 0, but it is DPO's beta, and at 0 nothing is learned; write 0.1"
        return ""


HEAD = "lm_head"
"""The name of a causal model's last layer in transformers."""


def adapts_head(targets: Sequence[str]) -> bool:
    """Return whether the last layer is among the layers with an adapter."""
    return any(target.rpartition(".")[2] == HEAD for target in targets)


ENGINES: dict[str, EngineSpec] = {
    "torch_ppo": EngineSpec("rc1_lib.training.engines.torch_ppo:TorchPPO", LearnsFrom.EPISODES, ("update", "ppo")),
    "torch_grpo": EngineSpec("rc1_lib.training.engines.torch_grpo:TorchGRPO", LearnsFrom.GROUPS, ("update", "grpo")),
    "trl_dpo": EngineSpec("rc1_lib.training.engines.trl_dpo:TrlDPO", LearnsFrom.GROUPS, trl=True),
    "pure_pt_sft": EngineSpec("rc1_lib.training.engines.pure_pt_sft:PurePtSFT", LearnsFrom.DEMONSTRATIONS),
}
_DEMONSTRATIONS = Spec("rc1_lib.training.strategies:Demonstrations", LearnsFrom.DEMONSTRATIONS)
STRATEGIES: dict[str, Spec] = {
    "ppo": Spec("rc1_lib.training.strategies:PPO", LearnsFrom.EPISODES),
    "groups": Spec("rc1_lib.training.strategies:Groups", LearnsFrom.GROUPS),
    "demonstrations": _DEMONSTRATIONS,
    "sft": _DEMONSTRATIONS,  # its name in the original script's small configuration
}
OFFLINE = {"gguf": "llama.cpp only plays trained policies (rc1 evaluate --engine gguf) and cannot learn"}
"""Engines for evaluation only -> why they cannot train a run."""
PLAYED = (LearnsFrom.EPISODES, LearnsFrom.GROUPS)
"""The kinds whose episodes the policy plays itself."""
ControlKind = Literal["random", "constant"]
"""The uninformative rewards of a control (`rc1_lib.training.control`), from which nothing can be learned."""
ALIASES = {"trl_ppo": "torch_ppo"}
"""Alias -> engine; these names date from before TRL removed PPO."""


def own_name(engine: str) -> str:
    """Return the registered name of an engine, given by name or alias."""
    return ALIASES.get(engine, engine)


def names_of(registry: Mapping[str, Spec], *kinds: LearnsFrom) -> list[str]:
    """Return the sorted names and aliases in a registry that learn from one of `kinds`, or all without `kinds`."""
    own = [name for name, spec in registry.items() if not kinds or spec.learns_from in kinds]
    return sorted([*own, *(alias for alias, name in ALIASES.items() if registry is ENGINES and name in own)])
