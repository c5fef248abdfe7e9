"""The recipe of the bundled base: `configs/base.yaml` as typed models. Imports nothing slow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from rc1_lib.config.file import read_model
from rc1_lib.config.values import Positive, Section, Seed, Share, TaskName

Rate = Annotated[float, Field(gt=0)]


class Corpus(Section):
    """A corpus of demonstrations."""

    seed: Seed
    """Seed of its questions and dialogues."""
    tasks: Annotated[tuple[TaskName, ...], Field(min_length=1)]
    """Tasks of the shards, in turn; a task that stands twice has twice the rows."""
    overrides: tuple[str, ...]
    """Overrides of the pool's configuration: the expert's habits, and the share of hard rows."""
    made_up: bool
    """Whether to learn what the expert makes up when it goes on without missing information. If false, these tokens
    count like those of tools and users."""
    rows: Positive
    """Number of demonstrations, before those that are too long are dropped."""
    per_shard: Positive
    """Number of demonstrations per shard; each is of one task."""
    workers: Positive
    """Number of processes that create it."""
    max_tokens: Positive
    """Most tokens of a demonstration; longer ones are dropped."""
    held_out: Positive
    """Rows at the end of the corpus that are not learned, for the accuracy by stage."""


class Shape(Section):
    """The model, as a Qwen3 configuration."""

    hidden_size: Positive
    """Width of the hidden states."""
    intermediate_size: Positive
    """Width of the feed-forward part."""
    layers: Positive
    """Number of blocks."""
    heads: Positive
    """Number of attention heads of the queries."""
    kv_heads: Positive
    """Number of attention heads of keys and values."""
    head_dim: Positive
    """Width of one head."""
    positions: Positive
    """Context length in tokens."""
    embedding_std: Rate
    """Initial standard deviation of the embeddings: names must be distinguishable before copying is learned."""


class Schedule(Section):
    """A phase of the training."""

    corpus: str
    """Name of its corpus."""
    steps: Positive
    """Optimizer steps."""
    batch_tokens: Positive
    """Tokens per step."""
    lr: Rate
    """Maximum learning rate."""
    warm_up: Positive
    """Steps in which the learning rate rises."""
    decay_from: Share
    """Share of the steps after which the learning rate decays linearly."""
    lr_end: Rate
    """Learning rate at the end."""
    weight_decay: Annotated[float, Field(ge=0)]
    """Weight decay of matrices; vectors and embeddings have none."""
    other_share: Share
    """Share of the other speakers' tokens that are learned too."""
    other_weight: Annotated[float, Field(ge=0)]
    """Loss weight of such tokens."""
    exact_weight: Annotated[float, Field(ge=1)]
    """Loss weight of tokens with only one correct value (a call's argument, an answer), and of a turn's choices."""
    short_until: Share
    """Share of the steps that use only short rows, from which copying is learned sooner."""
    short_tokens: Positive
    """Most tokens of a short row."""
    copy_every: Positive
    """While rows are short, every n-th step also learns a batch of random names and numbers that occur twice."""
    copy_length: Positive
    """Length of these random sequences before they repeat."""
    embedding_lr: Rate
    """Learning rate of the embeddings: lower, so that rare names stay distinguishable until copying is learned."""


class Recipe(Section):
    """The whole recipe."""

    seed: Seed
    """Seed of the initial weights and of the order of rows."""
    pool: str
    """Configuration of a run, with the generator, templates and habits of the expert."""
    threads: Positive
    """Number of threads. It is part of the recipe because it affects the rounding of sums."""
    corpora: dict[str, Corpus]
    """Corpora by name. The tokenizer is trained on the first one."""
    vocabulary: Annotated[int, Field(ge=512)]
    """Number of tokens in the vocabulary."""
    model: Shape
    training: tuple[Schedule, ...]
    """Phases in order. Each has its own optimizer, and starts from weights rounded to the file's precision."""

    @model_validator(mode="after")
    def _named(self) -> Recipe:
        for number, phase in enumerate(self.training):
            if phase.corpus not in self.corpora:
                raise ValueError(
                    f"training.{number}.corpus is {phase.corpus!r}, expected one of {', '.join(self.corpora)}"
                )
        return self


def read_recipe(path: Path) -> Recipe:
    """Read a recipe.

    Raises:
        ConfigError: naming file and key, what was found and what was expected.
    """
    return read_model(Recipe, path, (), "seed=7")
