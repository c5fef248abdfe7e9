"""The form that the page expects of the files that it quotes; errors name the file and the place in it.

Tickets and verdicts have readers in their own rooms; the forms here are for files that no other room reads.
A form looks like the file: `name?` may be missing or null, `*` is any name, and the entries of a list have one form.
Files may contain more. Numbers that are only shown are checked where they are shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import PlainValidator, StrictBool, StrictFloat, StrictInt, TypeAdapter, ValidationError, create_model

from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.metrics import FIGURES
from rc1_lib.preflight.ticket import Ticket
from rc1_lib.records import GateResult


def _verdict(body: Any) -> GateResult:
    try:
        found = GateResult.from_report(body)
    except (LookupError, TypeError) as error:
        lacks = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"is not a verdict of a gate ({lacks})") from None
    if not all(isinstance(name, str) for name in (found.name, *(check.name for check in found.checks))):
        raise ValueError("is not a verdict of a gate (a name is not text)")
    return found


_ANY = {"*": Any}
_GATE = Annotated[GateResult, PlainValidator(_verdict)]
_CHANGED = [{"key": Any, "value": Any, "published": Any}]
_ROUND = {"gates?": [_GATE], "waived?": {"*": str}, "not_applicable?": {"*": str}, "thresholds_changed?": _CHANGED}
_SIDE = dict.fromkeys(("success", "right", "right_needed", "lucky"), _ANY)
_SPLIT = {"*": {"before": _SIDE, "after": _SIDE}}
_OVERALL = {
    "before": dict.fromkeys(FIGURES, _ANY), "after": dict.fromkeys(FIGURES, _ANY),
    "change": {"success": {"confidence": StrictFloat}}, "prompts": StrictInt,
}  # fmt: skip
_COMPARED = {"overall": _OVERALL, "by": {"task": _SPLIT, "bucket": _SPLIT, "wording?": {"*": _ANY}}}
_EVALUATION = {"modes": {"sampled": _COMPARED}, "chance?": _ANY, "gate": _GATE, "thresholds_changed?": _CHANGED}
_SCORED = {"scoring?": {"models?": [str], "judge?": _ANY}}


def _type(form: Any) -> Any:
    """Return the pydantic type of a form."""
    if isinstance(form, list):
        return list[_type(form[0])]  # type: ignore[misc]
    if not isinstance(form, dict):
        return form
    if "*" in form:
        return dict[str, _type(form["*"])]  # type: ignore[misc]
    fields: dict[str, Any] = {name: (_type(of), ...) for name, of in form.items() if not name.endswith("?")}
    fields |= {name[:-1]: (_type(of) | None, None) for name, of in form.items() if name.endswith("?")}
    return create_model("Form", **fields)


def _shape(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(_type(form))


TRAINING = _shape({
    "ticket?": _ANY, "runs?": [{"seed": StrictInt, "checkpoint": str, "sha256": str}], "seconds?": _ANY,
})  # fmt: skip
RELEASED = _shape({
    **_EVALUATION, "key": str, "before": str, "after": str, "checkpoints": {"*": str},
    "episodes": {"path": str, "sha256": str}, "plots": {"*": str}, "examples?": str,
})  # fmt: skip
"""An evaluation in a release."""
CURVE = _shape([{"step": StrictInt}])
"""Metrics of a training, one line per step."""
SHAPES: Mapping[str, TypeAdapter[Any]] = {
    "training": TRAINING,
    **{name: _shape(form) for name, form in {
        "evaluation": _EVALUATION,
        "ticket": Ticket,
        "round1": _ROUND,
        "round2": _ROUND,
        "nightly": {**_ROUND, "rounds?": {"*": [_GATE]}},
        "calibration": {
            **_SCORED, "weights": {"*": StrictFloat}, "old_weights?": {"*": StrictFloat | None},
            "calibration?": {"intervals?": {"*": _ANY}},
        },
        "shadow-run": {**_SCORED, "figures?": _ANY},
        "shadow-terms": [{"solved": StrictBool}],
        "attack": {
            **_SCORED, "policies": {"*": {"sentence": str, "margin": StrictFloat | None, "intervals": {"*": _ANY}}},
        },
        "ablation": {**_SCORED, "figures?": {"without?": _ANY}},
        "metrics-of-rows": [{"id": str, "task": str, "bucket": str, "len_tokens": StrictFloat}],
        "balanced": [{"id": str}],
    }.items()},
}  # fmt: skip
"""The page's name for a file -> its form; other files may have any form."""


def check_shape(shape: TypeAdapter[Any], body: Any, path: Path) -> None:
    """Check that a file's body is of this form.

    Raises:
        RC1Error: names the file, the place in it, and what was found.
    """
    try:
        shape.validate_python(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, fault["loc"])) or "the file as a whole"
        found = "" if fault["type"] == "missing" else f", found {_kind(fault['input'])}"
        # Names of classes and exceptions mean nothing to a user.
        said = re.sub(r"^Value error, | or instance of \w+$", "", fault["msg"])
        raise RC1Error(
            f"{path}: does not have the form that this version of RC1 writes: {where}: {said}{found}; write it "
            f"again or move it away"
        ) from None


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
