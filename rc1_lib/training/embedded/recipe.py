"""The recipe of the embedded base: `configs/base.yaml`, typed. Imports nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from rc1_lib.config_file import read_yaml
from rc1_lib.config_values import Positive, Section, Seed, Share
from rc1_lib.errors import ConfigError

Rate = Annotated[float, Field(gt=0)]


class Corpus(Section):
    """What the base reads."""

    rows: Positive
    """Demonstrations written, before those that are too long are left out."""
    per_shard: Positive
    workers: Positive
    max_tokens: Positive
    held_out: Positive
    """Rows at the end of the corpus that are not learned, for the accuracy by stage."""


class Shape(Section):
    """The model, as a Qwen3 configuration."""

    hidden_size: Positive
    intermediate_size: Positive
    layers: Positive
    heads: Positive
    kv_heads: Positive
    head_dim: Positive
    positions: Positive
    embedding_std: Rate
    """How far apart the token embeddings start: names have to be told apart before copying is learned."""


class Schedule(Section):
    """The training."""

    steps: Positive
    batch_tokens: Positive
    lr: Rate
    warm_up: Positive
    decay_from: Share
    lr_end: Rate
    weight_decay: Annotated[float, Field(ge=0)]
    other_share: Share
    """Share of the tokens not written by the assistant that are learned too."""
    other_weight: Annotated[float, Field(ge=0)]
    exact_weight: Annotated[float, Field(ge=1)]
    """How much more a token counts that has one right value: in a call's argument, in an answer."""
    short_until: Share
    """Share of the steps in which only short rows are read: copying is learned sooner where little is in the way."""
    short_tokens: Positive
    copy_every: Positive
    """While rows are short, every so many steps a batch of random names and numbers, twice in a row, is read too."""
    copy_length: Positive
    embedding_lr: Rate
    """Of the token embeddings: lower, so that rare names stay apart until copying is learned."""


class Recipe(Section):
    """The whole recipe."""

    seed: Seed
    pool: str
    skip_tool_rate: Share
    threads: Positive
    """Sums are rounded differently with another number of threads, so it is part of the recipe."""
    corpus: Corpus
    vocabulary: Annotated[int, Field(ge=512)]
    model: Shape
    training: tuple[Schedule, ...]
    """Phases, one behind the other; each has its own optimizer and takes the weights as a file would hold them."""


def read_recipe(path: Path) -> Recipe:
    """Read a recipe.

    Raises:
        ConfigError: naming the file, the key, what was found and what was expected.
    """
    try:
        return Recipe.model_validate(read_yaml(path))
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise ConfigError(f"{path}: {where}: {fault['msg']}, found {fault['input']!r}; correct it") from None
