"""The sections of a run's configuration about data: sources, pool, shadow set, difficulty."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rc1_lib.config.values import (
    BucketShares,
    Positive,
    Range,
    Section,
    Seed,
    Share,
    TaskName,
    WrittenPath,
    names_all,
    sums_to_one,
)
from rc1_lib.records import BUCKETS, Bucket


class Sources(Section):
    """Where questions come from: `embedded`, `hub`, or a folder with a sub-folder of the public files for each task."""

    use: str
    """`embedded`, `hub`, a folder with one sub-folder a task, or a .jsonl file of finished rows."""
    hub: dict[TaskName, str]
    """Task -> hub name of its data set, read through Hugging Face `datasets`."""
    chinese_share: Share
    """Share of embedded questions written in Chinese."""
    max_uses: Positive
    """How often one question may stand in the pool; a second use is posed differently and is counted in the report."""


class Teacher(Section):
    """Habits of the scripted teacher that writes the demonstrations."""

    cue_rate: Share
    """Share of prompts worded vaguely, whether or not anything is missing: the misleading cue."""
    cue_pull: Annotated[float, Field(ge=1.0)]
    """How many times likelier the teacher is to ask when the prompt is vague."""
    need_pull: Annotated[float, Field(ge=1.0)]
    """How many times likelier it is to ask when something is missing; at 1 it does not notice."""
    skip_tool_rate: Share
    """How often it leaves a needed call out."""
    repeat_tool_rate: Share
    """How often it makes a call twice."""


class Recipe(Section):
    """How prompts of one intended difficulty are posed."""

    withhold: Share
    """Share of these rows with a slot taken out."""
    detours: Range
    """Fewest and most pages beside the needed ones that the teacher reads."""
    distractors: Range
    """Fewest and most pages beside the needed ones that the prompt lists."""
    evidence: Literal["complete", "partial"]
    """Whether the prompt quotes all supporting sentences, or only their beginnings, so that pages have to be read."""
    overlap: Share
    """Clue overlap aimed at: quotes are cut, or diluted by sentences from other pages, to come near it."""


class Pool(Section):
    """The seed pool."""

    path: WrittenPath
    """Where the pool is written."""
    n: Annotated[int, Field(gt=0, le=1_000_000)]
    """Rows of the pool."""
    seed: Seed
    """Seed of every choice that the builder makes."""
    max_turns: Annotated[int, Field(ge=2)]
    """Most messages of the assistant in one dialogue; a question that needs more is left out."""
    max_tool_hops: Positive
    """Most calls of wiki and calc in one dialogue; the teacher leaves needless ones out rather than exceed it."""
    clarify_rate: Share
    """Share of dialogues in which the teacher asks the user something."""
    tools: tuple[Literal["wiki", "calc"], ...]
    """Tools of the assistant beside `ask_user`."""
    templates_dir: str
    """The template pack that words the prompts."""
    reference_templates_dir: str
    """The old pack that the diversity gate measures the wording against."""
    teacher: Teacher
    intended: BucketShares
    """Shares of rows posed with each recipe; the difficulty that is reached is measured afterwards."""
    recipes: Annotated[dict[Bucket, Recipe], names_all(*BUCKETS)]
    workers: Annotated[int, Field(ge=1, le=256)]
    """Processes that write rows; their number changes no byte."""
    hold_out: str | None = None
    """A shadow set beside the run's own (rows in JSONL) whose questions the pool leaves out too."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        sums_to_one(self.intended, "pool.intended")
        return self


class Shadow(Section):
    """The held-out shadow set."""

    path: WrittenPath
    """Where the shadow set is written."""
    n: Annotated[int, Field(gt=0, le=20_000)]
    """Dialogues of the shadow set."""
    seed: Seed
    """Seed of the draw, and of the bootstraps of shadow run and ablation."""
    stratify: bool
    """Whether it is drawn in the shares of `datasets`."""


class Bounds(Section):
    """Where a feature stops being easy and starts being hard; `rising` features are harder when larger."""

    easy: float
    """Votes easy up to here or below it (clue_overlap: above it); docs/gates.md says which."""
    hard: float
    """Votes hard from here on or above it (clue_overlap: below it)."""


class Difficulty(Section):
    """Difficulty measures, buckets and balance."""

    metrics_path: WrittenPath
    """Where the measures of every row are written."""
    balanced_path: WrittenPath
    """Where the balanced pool is written."""
    target: BucketShares
    """Share of each difficulty in the balanced pool; they sum to 1."""
    bounds: dict[str, Bounds]
    clarification_hard_turns: Positive
    """Turns from which on a row that lacks something votes hard; below, medium."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        sums_to_one(self.target, "difficulty.target")
        wanted = {
            "len_tokens", "turns", "tool_hops", "ops_numeric", "entities", "connector_density", "clue_overlap",
        }  # fmt: skip
        if set(self.bounds) != wanted:
            raise ValueError(f"difficulty.bounds must name exactly {', '.join(sorted(wanted))}")
        return self


class ScaleUp(Section):
    """Growing the pool size by size: rc1 scale-up."""

    sizes: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Rows of each size, rising; the last one is `pool.n`."""
    judged: Positive
    """Dialogues of a size that the judge is asked about anew, before it grows and after."""
    approval: bool
    """Whether a person has to approve each further size in the Prefect UI."""
    approval_hours: Annotated[float, Field(gt=0, le=10 * 366 * 24)]
    """Hours that an approval is waited for."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if any(larger <= smaller for smaller, larger in pairwise(self.sizes)):
            raise ValueError(f"scale_up.sizes is {list(self.sizes)}, expected each size larger than the one before")
        return self
