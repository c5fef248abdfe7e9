"""Types of configuration values, and the base class of all sections."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, TypeVar
from unicodedata import category

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rc1_lib.records import BUCKETS, Bucket, Task
from rc1_lib.task_specs import task_names, unknown_task

Value = TypeVar("Value")
Round = Literal["round1", "round2"]


_LONGEST_NAME = 200
"""In bytes. File systems allow 255, but names of manifests and temporary files are longer than the file's."""


def _below_the_workspace(path: str) -> str:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.name or "\0" in path:
        raise ValueError(f"found {path!r}, expected a file below the workspace: a relative path without '..'")
    if max(len(part.encode()) for part in parts.parts) > _LONGEST_NAME:
        raise ValueError(f"found {path[:40]!r}..., expected names of at most {_LONGEST_NAME} bytes")
    return path


def ordered(bounds: tuple[Value, Value]) -> tuple[Value, Value]:
    """Return the bounds; raises `ValueError` if the first is above the second."""
    if bounds[0] > bounds[1]:  # type: ignore[operator]
        raise ValueError(f"found [{bounds[0]}, {bounds[1]}], expected the smaller number first")
    return bounds


def _known_task(task: str) -> str:
    if task not in task_names():
        raise ValueError(unknown_task(task))
    return task


def _reproducible_metric(metric: str) -> str:
    if metric in _OF_THE_MACHINE:
        raise ValueError(
            f"found '{metric}', which differs when the same run is repeated, so the run would end at another step; "
            f"name a metric that depends only on the training steps"
        )
    return metric


_OF_THE_MACHINE = ("sec_per_step", "mem_used_mb", "costs/judge_calls", "costs/judge_usd")
MetricName = Annotated[str, Field(min_length=1), AfterValidator(_reproducible_metric)]
"""A metric of a step that may end a run."""


def names_all(*names: str) -> AfterValidator:
    """Return a validator that requires all `names` in a mapping."""

    def check(found: dict[str, Value]) -> dict[str, Value]:
        missing = [name for name in names if name not in found]
        if missing:
            raise ValueError(f"lacks {', '.join(missing)}; expected all of {', '.join(names)}")
        return found

    return AfterValidator(check)


_BLANK = frozenset("\u115f\u1160\u3164\uffa0")
"""Characters that are invisible, although Unicode calls them letters."""
_REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _reason_text(reason: str) -> str:
    if not any(letter.isalpha() and letter not in _BLANK for letter in reason):
        raise ValueError(f"found {reason!r}, expected a reason in words, which reports, the UI and the ticket show")
    if any(sign in _REORDERING or category(sign) in ("Cc", "Zl", "Zp") for sign in reason.strip()):
        # On a terminal, control characters could erase the line that says what was waived.
        raise ValueError(f"found {reason!r}, expected one line without control characters")
    return reason


Reason = Annotated[str, AfterValidator(_reason_text)]
"""Why something is not enforced; reports show it."""
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
TaskName = Annotated[Task, AfterValidator(_known_task), Field(description="task")]
"""A task that `rc1_lib.task_specs` knows."""
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Words = Annotated[int, Field(ge=1, le=50)]
"""The length of an n-gram."""
Range = Annotated[
    tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]],
    AfterValidator(ordered),
    Field(description="[fewest, most], integers ≥ 0"),
]
BucketShares = Annotated[dict[Bucket, Share], names_all(*BUCKETS)]
WrittenPath = Annotated[str, AfterValidator(_below_the_workspace), Field(description="path below the workspace")]
"""A file that RC1 writes. To read another file instead, a command passes it to `rc1_lib.run.open_run`."""


class Section(BaseModel):
    """A section of the file; it is frozen and rejects unknown keys, infinity and NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def sums_to_one(shares: Mapping[Any, float], name: str) -> None:
    """Raise `ValueError` if `shares` do not sum to 1; the error names them `name`."""
    total = sum(shares.values())
    if abs(total - 1.0) > 1e-6:
        stated = ", ".join(f"{of} {share:g}" for of, share in shares.items())
        raise ValueError(f"the shares of {name} ({stated}) sum to {total:g}, expected 1")
