"""Train the embedded model: next-token prediction, with measures that make a tiny model learn to copy.

Three things help it to copy sooner: rows are short at first; batches of random names and numbers that occur twice are
mixed in; and tokens with only one correct value weigh more than the expert's phrases, which cannot be predicted. So
do those that choose what a turn does: whether to ask hangs on one or two tokens of a dialogue.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import BaseModel
from torch import Tensor
from transformers import Qwen3ForCausalLM

from models.build_embedded.tokens import Batch, Packed, batches, padded

_REPORT_EVERY = 50


class Phase(BaseModel, extra="forbid"):
    """A phase of the recipe."""

    corpus: str
    steps: int
    batch_tokens: int
    lr: float
    warm_up: int
    decay_from: float
    lr_end: float
    weight_decay: float
    other_share: float
    other_weight: float
    exact_weight: float
    short_until: float
    short_tokens: int
    copy_every: int
    copy_length: int
    embedding_lr: float


def train(model: Qwen3ForCausalLM, packed: Packed, phase: Phase, pad_id: int, seed: int) -> list[dict[str, float]]:
    """Train in place, and return the losses of every 50 steps.

    `own` is the mean of the assistant's tokens, and `exact` of those with one correct value, if there were any.
    """
    optimizer = _optimizer(model, phase)
    rng = np.random.default_rng(seed)
    feed = _endless(packed, phase, rng)
    copied = np.unique(packed.ids[packed.exact])
    curve: list[dict[str, float]] = []
    seen: list[tuple[float, float]] = []
    model.train()
    for step in range(phase.steps):
        for group in optimizer.param_groups:
            group["lr"] = group["full_lr"] * _share(step, phase)
        optimizer.zero_grad(set_to_none=True)
        seen.append(_learn(model, padded(packed, next(feed), pad_id), phase, rng))
        if step < phase.short_until * phase.steps and step % phase.copy_every == 0:
            _copy_loss(model, copied, phase, rng).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % _REPORT_EVERY == 0 or step + 1 == phase.steps:
            own = float(np.mean([loss for _, loss in seen]))
            point = {"step": step + 1, "own": round(own, 4)}
            exacts = [loss for loss, _ in seen if not math.isnan(loss)]  # a batch may have no such token
            if exacts:
                point["exact"] = round(float(np.mean(exacts)), 4)
            curve.append(point)
            print(f"training: {point} of {phase.steps} steps", flush=True)
            seen = []
    return curve


def _optimizer(model: Qwen3ForCausalLM, phase: Phase) -> torch.optim.AdamW:
    embedding = model.model.embed_tokens.weight
    others = [value for value in model.parameters() if value is not embedding]
    groups = [
        {
            "params": [value for value in others if value.dim() > 1],
            "weight_decay": phase.weight_decay,
            "full_lr": phase.lr,
        },
        {"params": [value for value in others if value.dim() <= 1], "weight_decay": 0.0, "full_lr": phase.lr},
        {"params": [embedding], "weight_decay": 0.0, "full_lr": phase.embedding_lr},
    ]
    return torch.optim.AdamW(groups, lr=phase.lr, betas=(0.9, 0.95))


def _learn(model: Qwen3ForCausalLM, batch: Batch, phase: Phase, rng: np.random.Generator) -> tuple[float, float]:
    """Add the gradients of a batch; return the mean losses of exact tokens and of all the assistant's tokens.

    Only the assistant's tokens and a sample of the others are projected to logits.
    """
    hidden = model.model(input_ids=batch.ids, use_cache=False).last_hidden_state[:, :-1]
    targets, own, exact = batch.ids[:, 1:], batch.own[:, 1:], batch.exact[:, 1:]
    heavy = exact | batch.choice[:, 1:]
    drawn = torch.from_numpy(rng.random(own.shape) < phase.other_share)
    other = batch.real[:, 1:] & ~own & drawn
    losses = _losses(model, hidden[own], targets[own])
    weights = torch.where(heavy[own], phase.exact_weight, 1.0)
    loss = (losses * weights).sum() / weights.sum()
    if bool(other.any()):
        loss = loss + phase.other_weight * _losses(model, hidden[other], targets[other]).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    losses = losses.detach()
    return float(losses[exact[own]].mean()), float(losses.mean())


def _copy_loss(model: Qwen3ForCausalLM, copied: np.ndarray, phase: Phase, rng: np.random.Generator) -> Tensor:
    """Compute the loss of the second half of random sequences that occur twice, with a gap of random length."""
    rows = max(1, phase.batch_tokens // (8 * phase.copy_length))
    once = torch.from_numpy(rng.choice(copied, (rows, phase.copy_length)).astype(np.int64))
    between = torch.from_numpy(rng.choice(copied, (rows, int(rng.integers(0, 6)))).astype(np.int64))
    ids = torch.cat([once, between, once], dim=1)
    begin = ids.shape[1] - phase.copy_length
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, begin:-1]
    return _losses(model, hidden.flatten(0, 1), ids[:, begin + 1 :].flatten()).mean()


def _losses(model: Qwen3ForCausalLM, hidden: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(model.lm_head(hidden), targets, reduction="none")


def _endless(packed: Packed, phase: Phase, rng: np.random.Generator) -> Iterator[list[int]]:
    step = 0
    while True:
        short = step < phase.short_until * phase.steps
        longest = phase.short_tokens if short else int(packed.lengths.max())
        for rows in batches(packed, phase.batch_tokens, longest, rng):
            yield rows
            step += 1
            if short and step >= phase.short_until * phase.steps:
                break


def _share(step: int, phase: Phase) -> float:
    """Return the factor of the full learning rate at a step."""
    warm = min(1.0, (step + 1) / phase.warm_up)
    left = (1.0 - step / phase.steps) / (1.0 - phase.decay_from)
    return max(phase.lr_end / phase.lr, warm * min(1.0, left))
