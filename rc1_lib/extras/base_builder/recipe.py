"""The recipe of the embedded base: `configs/base.yaml`, typed. Imports nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from rc1_lib.config.file import read_model
from rc1_lib.config.values import Positive, Section, Seed, Share

Rate = Annotated[float, Field(gt=0)]


class Corpus(Section):
    """Demonstrations that the base reads."""

    seed: Seed
    """Of its worlds and dialogues."""
    overrides: tuple[str, ...]
    """Of the pool's configuration: the teacher's habits, and how many rows are hard."""
    made_up: bool
    """Whether what the teacher makes up, where it goes on without a missing slot, is learned like its other words; else
    it counts like what tools and users say."""
    rows: Positive
    """Demonstrations written, before those that are too long are left out."""
    per_shard: Positive
    """Demonstrations written at a time, of one task each."""
    workers: Positive
    """Processes that write it."""
    max_tokens: Positive
    """Longer demonstrations are left out."""
    held_out: Positive
    """Rows at the end of the corpus that are not learned, for the accuracy by stage."""


class Shape(Section):
    """The model, as a Qwen3 configuration."""

    hidden_size: Positive
    """Width of the states."""
    intermediate_size: Positive
    """Width inside the feed-forward part."""
    layers: Positive
    """Blocks."""
    heads: Positive
    """Attention heads of the queries."""
    kv_heads: Positive
    """Attention heads of keys and values."""
    head_dim: Positive
    """Width of one head."""
    positions: Positive
    """Most tokens of a context."""
    embedding_std: Rate
    """How far apart the token embeddings start: names have to be distinguished before copying is learned."""


class Schedule(Section):
    """A phase of the training."""

    corpus: str
    """The name of what it reads."""
    steps: Positive
    """Optimizer steps."""
    batch_tokens: Positive
    """Tokens of one step."""
    lr: Rate
    """The highest rate."""
    warm_up: Positive
    """Steps over which the rate rises."""
    decay_from: Share
    """Share of the steps from which on the rate falls, linearly."""
    lr_end: Rate
    """The rate at the end."""
    weight_decay: Annotated[float, Field(ge=0)]
    """Of matrices; vectors and embeddings have none."""
    other_share: Share
    """Share of the tokens not written by the assistant that are learned too."""
    other_weight: Annotated[float, Field(ge=0)]
    """How much such a token counts."""
    exact_weight: Annotated[float, Field(ge=1)]
    """How much more a token counts that has one right value: in a call's argument, in an answer."""
    short_until: Share
    """Share of the steps in which only short rows are read: copying is learned sooner where little is in the way."""
    short_tokens: Positive
    """Most tokens of a short row."""
    copy_every: Positive
    """While rows are short, every so many steps a batch of random names and numbers, twice in a row, is read too."""
    copy_length: Positive
    """How many of them, before they are repeated."""
    embedding_lr: Rate
    """Of the token embeddings: lower, so that rare names stay apart until copying is learned."""


class Recipe(Section):
    """The whole recipe."""

    seed: Seed
    """Of the model's first weights and of the order of rows."""
    pool: str
    """The run's configuration that worlds, templates and the teacher's habits come from."""
    threads: Positive
    """Sums are rounded differently with another number of threads, so it is part of the recipe."""
    corpora: dict[str, Corpus]
    """By name. The first is what the tokenizer is trained on."""
    vocabulary: Annotated[int, Field(ge=512)]
    """Tokens of the tokenizer."""
    model: Shape
    training: tuple[Schedule, ...]
    """Phases, one after the other; each has its own optimizer and takes the weights as a file would hold them."""

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
        ConfigError: naming the file, the key, what was found and what was expected.
    """
    return read_model(Recipe, path, (), "seed=7")
