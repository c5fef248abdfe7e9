"""The form that the page expects of the files that it quotes: a file of another form is named, with the place in it.

A file may contain more than these parts; numbers that are only shown are checked one by one where they are shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, StrictBool, StrictFloat, StrictInt, TypeAdapter, ValidationError

from rc1_lib.errors import RC1Error


class _Change(BaseModel):
    key: Any
    value: Any
    published: Any


class _Check(BaseModel):
    name: str
    value: Any
    op: str
    threshold: Any
    passed: StrictBool


class _Gate(BaseModel):
    name: str
    status: str
    checks: list[_Check]


class _Round(BaseModel):
    gates: list[_Gate] | None = None
    waived: dict[str, str] | None = None
    not_applicable: dict[str, str] | None = None
    thresholds_changed: list[_Change] | None = None


class _Nightly(_Round):
    rounds: dict[str, list[_Gate]] | None = None


class _Revocation(BaseModel):
    reason: str


class _Ticket(BaseModel):
    issued: str
    expires: str
    revoked: _Revocation | None


class _Trained(BaseModel):
    seed: StrictInt
    checkpoint: str
    sha256: str


class _Training(BaseModel):
    runs: list[_Trained] | None = None
    seconds: dict[str, Any] | None = None


class _Success(BaseModel):
    success: dict[str, Any]


class _Figures(_Success):
    success_needed: dict[str, Any]
    success_clear: dict[str, Any]
    success_hard: dict[str, Any]
    ask_recall: dict[str, Any]
    ask_precision: dict[str, Any]
    overclar_rate: dict[str, Any]


class _Confidence(BaseModel):
    confidence: StrictFloat


class _Changed(BaseModel):
    success: _Confidence


class _Overall(BaseModel):
    before: _Figures
    after: _Figures
    change: _Changed
    prompts: StrictInt


class _Part(BaseModel):
    before: _Success
    after: _Success


class _By(BaseModel):
    __pydantic_extra__: dict[str, dict[str, Any]]
    model_config = ConfigDict(extra="allow")
    task: dict[str, _Part]
    bucket: dict[str, _Part]


class _Compared(BaseModel):
    overall: _Overall
    by: _By


class _Modes(BaseModel):
    sampled: _Compared


class _EvaluationGate(BaseModel):
    checks: list[_Check] | None = None


class _Evaluation(BaseModel):
    modes: _Modes
    gate: _EvaluationGate
    thresholds_changed: list[_Change] | None = None


class _Print(BaseModel):
    path: str
    sha256: str


class _Released(_Evaluation):
    key: str
    before: str
    after: str
    checkpoints: dict[str, str]
    episodes: _Print
    plots: dict[str, str]
    examples: str | None = None


class _Scoring(BaseModel):
    models: list[str] | None = None
    judge: dict[str, Any] | None = None


class _Scored(BaseModel):
    scoring: _Scoring | None = None


class _Intervals(BaseModel):
    intervals: dict[str, dict[str, Any]] | None = None


class _Calibration(_Scored):
    weights: dict[str, StrictFloat]
    old_weights: dict[str, StrictFloat | None] | None = None
    calibration: _Intervals | None = None


class _ShadowRun(_Scored):
    figures: dict[str, Any] | None = None


class _Term(BaseModel):
    solved: StrictBool


class _Policy(BaseModel):
    sentence: str
    margin: StrictFloat | None
    intervals: dict[str, dict[str, Any]]


class _Attack(_Scored):
    policies: dict[str, _Policy]


class _Sides(BaseModel):
    without: dict[str, Any] | None = None


class _Ablation(_Scored):
    figures: _Sides | None = None


class _Step(BaseModel):
    step: StrictInt


class _Row(BaseModel):
    id: str


class _MeasuredRow(_Row):
    task: str
    bucket: str
    len_tokens: StrictFloat


TRAINING: TypeAdapter[Any] = TypeAdapter(_Training)
RELEASED: TypeAdapter[Any] = TypeAdapter(_Released)
"""An evaluation that a release is to rest on."""
CURVE: TypeAdapter[Any] = TypeAdapter(list[_Step])
"""Metrics of a training, a line each step."""
SHAPES: Mapping[str, TypeAdapter[Any]] = {
    "training": TRAINING,
    "evaluation": TypeAdapter(_Evaluation),
    "ticket": TypeAdapter(_Ticket),
    "round1": TypeAdapter(_Round),
    "round2": TypeAdapter(_Round),
    "nightly": TypeAdapter(_Nightly),
    "calibration": TypeAdapter(_Calibration),
    "shadow-run": TypeAdapter(_ShadowRun),
    "shadow-terms": TypeAdapter(list[_Term]),
    "attack": TypeAdapter(_Attack),
    "ablation": TypeAdapter(_Ablation),
    "metrics-of-rows": TypeAdapter(list[_MeasuredRow]),
    "balanced": TypeAdapter(list[_Row]),
}
"""By what the page calls a file; it expects nothing of any other one."""


def check_shape(shape: TypeAdapter[Any], body: Any, path: Path) -> None:
    """Check that a file's body is of this form.

    Raises:
        RC1Error: naming the file, the place in it, and what was found.
    """
    try:
        shape.validate_python(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, fault["loc"])) or "the file as a whole"
        found = "" if fault["type"] == "missing" else f", found {_kind(fault['input'])}"
        said = re.sub(r" or instance of \w+$", "", fault["msg"])  # the name of a class says nothing to a user
        raise RC1Error(
            f"{path}: is not of the form that this version of RC1 writes: {where}: {said}{found}; write it "
            f"again or move it away"
        ) from None


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
