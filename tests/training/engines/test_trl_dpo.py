"""What `trl_dpo` alone does: TRL's loss says what RC1's own does, on takes of the start policy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from rc1_lib.config.updates import TrlDPO
from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.training.dpo.trl_update import FIGURES, Logprobs, PairsRead, trl_dpo_update
from rc1_lib.training.updates.batch import EpisodeBatch, collate
from rc1_lib.training.updates.parity import ParityError
from rc1_lib.training.updates.stepper import Stepper
from tests.shares import share
from tests.training.grpo.toys import takes
from tests.training.test_episode_engines import engine_of, played, same
from tests.training.tiny_world import ENGINES

Tiny = Callable[..., Run]
ONE_STEP = ("training.update.minibatches=1", "training.trl_dpo.minibatches=1", "kl_coef=0.1", "lr=0.001")


def scored(batch: dict[str, Any]) -> dict[str, Any]:
    """The batch with a score of its own for every take, so that every prompt has a best and a worst."""
    return batch | {"scores": [0.1 * place for place in range(len(batch["scores"]))]}


def test_trls_loss_and_ours_take_the_same_step(tiny: Tiny) -> None:
    """At temperature 1, since TRL knows no other, and on a policy that has left its start already."""
    anybodys = ("training.parity.mean=100", "training.parity.far_share=1")  # ours would learn from its own takes
    warm = ("training.rollout.temperature=1.0", *anybodys, *ONE_STEP)
    theirs, ours = (engine_of(tiny(*ENGINES[name], *warm)) for name in ("trl_dpo", "torch_dpo"))
    batch = scored(played(theirs, tiny(*ENGINES["trl_dpo"], *warm)))
    theirs.train_step(batch)
    ours.load_state_dict(copy.deepcopy(theirs.state_dict()))
    seen, expected = theirs.train_step(batch), ours.train_step(batch)
    assert expected["pairs/differ"] == seen["pairs/differ"] > 0
    assert abs(expected["rewards/margins"]) > 1e-3
    for name in ("loss", "rewards/margins", "rewards/accuracies"):
        assert seen[name] == pytest.approx(expected[name], abs=1e-5), name
    # Ours counts pairs that teach nothing, theirs leaves them out: a matter of scale.
    assert seen["grad_norm"] * seen["pairs/differ"] == pytest.approx(expected["grad_norm"], rel=1e-4)


def test_it_learns_from_the_start_and_plays_with_what_it_has_learned(tiny: Tiny) -> None:
    run = tiny(*ENGINES["trl_dpo"])
    engine = engine_of(run)
    first = scored(played(engine, run))
    metrics = engine.train_step(first)
    assert metrics["objective/kl_k3"] == pytest.approx(0.0, abs=1e-6) and metrics["ratio"] == pytest.approx(1.0)
    assert played(engine, run)["trajectories"] == first["trajectories"], "the start's, whatever was learned"
    assert engine.train_step(first)["objective/kl_k3"] > 1e-4


def test_takes_that_are_not_the_starts_end_the_training(tiny: Tiny) -> None:
    run = tiny(*ENGINES["trl_dpo"])
    engine = engine_of(run)
    batch = scored(played(engine, run))
    engine.train_step(batch)
    rows, keys = batch["rows"] * 2, [f"{place}" for place in range(2 * len(batch["rows"]))]
    own = engine.play(rows, keys, temperature=engine.temperature, seed=5, iteration=0)
    with pytest.raises(ParityError, match="sampled with other probabilities than they are learned with"):
        engine.train_step(scored(batch | {"trajectories": own, "scores": [0.0] * len(own)}))


@pytest.mark.parametrize("temperature", share([0.7, 1.0], 0.7))
@pytest.mark.parametrize("of_reference", [False, True])
def test_a_pass_of_trls_that_reads_otherwise_than_was_sampled_ends_the_training(
    tiny: Tiny, of_reference: bool, temperature: float
) -> None:
    """It is the passes that learn which are looked at, the policy's and the reference's, on a policy that has moved."""
    run = tiny(*ENGINES["trl_dpo"], f"training.rollout.temperature={temperature}")
    engine = engine_of(run)
    batch = scored(played(engine, run))
    engine.train_step(dict(batch))
    assert engine.train_step(dict(batch))["policy/sampling_gap"] < 1e-5

    def off(module: Any, inputs: Any, output: Any) -> Any:
        if getattr(output, "log_probs", None) is not None and of_reference is not output.log_probs.requires_grad:
            output.log_probs = output.log_probs - 0.01
        return output

    engine.policy.peft.register_forward_hook(off)
    with pytest.raises(ParityError, match=r"differs by 0\.01 nats on average"):
        engine.train_step(dict(batch))


def test_takes_that_all_scored_the_same_teach_nothing(tiny: Tiny) -> None:
    run = tiny(*ENGINES["trl_dpo"])
    engine = engine_of(run)
    batch = played(engine, run)
    before = engine.policy.adapter_state()
    metrics = engine.train_step(batch | {"scores": [0.5] * len(batch["scores"])})
    assert (metrics["pairs/differ"], metrics["loss"], metrics["update/steps"]) == (0, 0, 0)
    assert same(engine.policy.adapter_state(), before)


class Margins:
    """A loss in TRL's place that only counts: by its mean length a chosen take is longer."""

    def __init__(self, weight: Tensor) -> None:
        self.weight, self.sizes = weight, list[int]()

    def read(self, inputs: Mapping[str, Tensor]) -> PairsRead:
        pairs = len(inputs["input_ids"]) // 2
        self.sizes.append(pairs)
        loss = self.weight.sum() * inputs["completion_mask"][:pairs].sum() / pairs
        ids_N = inputs["input_ids"][inputs["completion_mask"].bool()]
        return PairsRead(loss, dict.fromkeys(FIGURES, 1.0), Logprobs(ids_N + 0.25, ids_N - 0.05))


def updated(batch: EpisodeBatch, micro_tokens: int) -> tuple[dict[str, float], Margins]:
    plain: dict[str, Any] = dict(group_size=2, loss_type="sigmoid", epochs=1, minibatches=1, max_grad_norm=1e9)
    section = TrlDPO(**plain, micro_tokens=micro_tokens)
    losses = Margins(torch.nn.Parameter(torch.ones(2)))
    stepper = Stepper(torch.optim.SGD([losses.weight], lr=1.0), section.max_grad_norm, None)

    def read(rows: Sequence[int]) -> Logprobs:
        return Logprobs(batch.ids.float(), batch.ids.float())

    return trl_dpo_update(losses, batch, stepper, section, torch.Generator().manual_seed(1), read), losses


def test_a_step_is_the_mean_over_its_pairs_however_many_passes_it_takes() -> None:
    batch = collate(*takes([2, 2, 2]), pad_id=0)
    (wide, one), (narrow, many) = updated(batch, 10_000), updated(batch, 1)
    assert (one.sizes, many.sizes) == ([3], [1, 1, 1])
    assert narrow == pytest.approx(wide, rel=1e-6)
    torch.testing.assert_close(many.weight, one.weight)
    assert wide["policy/sampling_gap"] == pytest.approx(0.25) and wide["policy/sampling_far"] == 1


def test_a_step_without_a_second_take_of_any_prompt_is_refused() -> None:
    with pytest.raises(RC1Error, match="no prompt of this step has two scored takes"):
        updated(collate(*takes([1, 1]), pad_id=0), 64)
