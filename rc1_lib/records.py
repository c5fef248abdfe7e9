"""The types that all stages share: questions, their parts, rows, and verdicts.

A source yields `Question`s; a `Row` is a whole dialogue about one question; a `GateResult` is a gate's verdict on many
rows. Questions and verdicts are frozen. Rows and their messages are lines of JSON and rows of frames, so they are typed
dicts, which need no copying.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal, NotRequired, TypedDict

from rc1_lib.numbers.uncertainty import CheckInterval

Task = str
"""A task's name, registered in `rc1_lib.task_specs`."""
SourceKey = Literal["question", "answer", "choices", "context"]
"""A key of a data set's records that may be a column of another name."""
Language = Literal["en", "zh"]
Tool = Literal["wiki", "calc", "ask_user"]
Bucket = Literal["easy", "medium", "hard"]
Way = Literal["gone", "ambiguous"]
"""How a piece is missing: nothing that can be reached tells it, or the description fits several things."""
Rule = Literal["obtained", "reply_used"]
"""Dimensions computed by rule; like the judge's, they depend only on the dialogue."""
BUCKETS: tuple[Bucket, ...] = ("easy", "medium", "hard")


@dataclass(frozen=True, slots=True)
class Passage:
    """One page that the `wiki` tool can return."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of the worked solution: `wiki` with a passage's title, or `calc` with an expression.

    `result` is what the call returns: for `wiki` the passage's text, for `calc` the number as text. It is the result in
    the complete environment; in a row with missing information the call returns the reduced text.
    """

    tool: Literal["wiki", "calc"]
    argument: str
    result: str


@dataclass(frozen=True, slots=True)
class Slot:
    """A piece of the question that can be withheld, so that only asking the user reveals it.

    Attributes:
        where: `ask` if it is in `Question.ask`, `story` if it is in the passages and support.
        value: its exact text, which occurs there exactly once as a whole word.
        vague: what is written instead ("some", "that person", "某人").
        wanted: a noun phrase that completes "Could you tell me ...?" without revealing the value.
        way: how it is missing if it is withheld.
        hides: titles that the prompt does not list if the value is withheld, since they would give it away.
    """

    where: Literal["ask", "story"]
    value: str
    vague: str
    wanted: str
    way: Way = "gone"
    hides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Twin:
    """A second thing that fits the question's description but leads to another answer.

    With it in the world and the name withheld, only the user knows which of the two is meant.

    Attributes:
        slot: the name in the question that is withheld, with its vague wording.
        described: the sentences that say of the named thing what the question says of it.
        support: the sentences that say the same of the twin, then those with the needed facts about it.
        steps: the worked solution if the twin is meant.
    """

    slot: Slot
    described: tuple[str, ...]
    support: tuple[str, ...]
    passages: tuple[Passage, ...]
    steps: tuple[Step, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Decoy:
    """A sentence on a needed page that sounds as if something were missing, but says nothing that is needed.

    Attributes:
        vague: the sentence; otherwise the page lacks it.
    """

    title: str
    vague: str


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its exact answer and everything needed to solve it.

    Attributes:
        id: stable and unique within a source, for example `gsm8k/train/12`.
        task: its task, whose answer rule decides success.
        source: the source's name, for example `gsm8k` or `embedded`.
        ask: the question itself, without the facts it needs (a story's last sentence; a two-hop question).
        support: the sentences with the needed facts, in reading order.
        passages: every page that `wiki` can return, those of the support first.
        steps: the worked solution as tool calls, in order, without asking the user.
        answer: the exact answer as text; for strategyqa always `yes` or `no`, in every language.
        aliases: other texts that count as the same answer.
        slot: what can be withheld so that it is gone; None if nothing can be withheld cleanly.
        kept: why nothing can be withheld, for counting; empty if something can, or if the source does not say.
        twin: what makes the question ambiguous; None if nothing does.
        decoy: what makes it sound incomplete although it is not; None if nothing does.
        dialogue: a finished row of the pool's schema, which is used unchanged; None if one is to be written.
    """

    id: str
    task: Task
    source: str
    lang: Language
    ask: str
    support: tuple[str, ...]
    passages: tuple[Passage, ...]
    steps: tuple[Step, ...]
    answer: str
    aliases: tuple[str, ...] = ()
    slot: Slot | None = None
    twin: Twin | None = None
    decoy: Decoy | None = None
    dialogue: Row | None = None
    kept: str = ""


class FunctionCall(TypedDict):
    """The tool of a call, and its arguments: a JSON object, as text."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """One call in a message. Only imported dialogues lack the `id`."""

    id: NotRequired[str]
    type: Literal["function"]
    function: FunctionCall


class Message(TypedDict):
    """One message of a dialogue, in the chat format of OpenAI and Hugging Face.

    Attributes:
        role: `system`, `user`, `assistant` or `tool`; imported dialogues may have others.
        content: the text; None only in imported dialogues.
        tool_calls: the assistant's calls; frames have None for a message without calls.
        tool_call_id: in a tool's message, the call that it answers.
        name: in a tool's message, the tool.
    """

    role: str
    content: str | None
    tool_calls: NotRequired[list[ToolCall] | None]
    tool_call_id: NotRequired[str | None]
    name: NotRequired[str | None]


class RowWording(TypedDict):
    """The parts of a row's user message, and the closing reason of the dialogue."""

    ask: str
    quoted: list[str]
    listed: list[str]
    reason: str


class RowPassage(TypedDict):
    """A `Passage` in a row."""

    title: str
    text: str


class RowSlot(TypedDict):
    """A `Slot` in a row; rows of an older form lack `way`, which is then `gone`."""

    where: Literal["ask", "story"]
    value: str
    vague: str
    wanted: str
    way: NotRequired[Way | None]


class UserReplies(TypedDict):
    """What a row's user says when asked, whether or not the row's own dialogue asks.

    Attributes:
        gives: the reply to a question for the missing piece; None if nothing is missing.
        otherwise: the reply to any other question.
    """

    gives: str | None
    otherwise: str


class Row(TypedDict):
    """A whole dialogue about one question, with everything that its environment needs: one line of the pool.

    Rows written by RC1 have all keys; imported rows may lack optional ones, and rows of an older format lack
    `user_replies`. Absent and None mean the same, since frames have no absent values.
    """

    id: str
    task: Task
    split: str
    source: str
    source_id: str
    use: NotRequired[int]
    lang: Language
    pack: NotRequired[str]
    template_id: str
    role: str
    style: str
    recipe: NotRequired[Bucket]
    messages: list[Message]
    posed: RowWording
    question: str
    support: list[str]
    passages: NotRequired[list[RowPassage] | None]
    answer: str
    aliases: NotRequired[list[str] | None]
    slot: NotRequired[RowSlot | None]
    user_replies: NotRequired[UserReplies | None]
    needs_clarification: bool
    cue: NotRequired[bool]
    asked: int
    final: str
    solved: bool
    lucky: bool


class MeasuredRow(Row):
    """A row with its measured difficulty, for training and evaluation."""

    bucket: Bucket


class Status(StrEnum):
    """The status of a gate: `ERROR` if it could not be evaluated, `WAITING` if it was not reached.

    `NOT_APPLICABLE`: with this configuration it has nothing to judge, and every report says so.
    """

    PASSED = "passed"
    FAILED = "failed"
    WAIVED = "waived"
    NOT_APPLICABLE = "not applicable"
    ERROR = "error"
    WAITING = "not judged"


PASSING = (Status.PASSED, Status.WAIVED, Status.NOT_APPLICABLE)
"""Statuses that allow a ticket; of these only `PASSED` was judged, and reports list the others."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


@dataclass(frozen=True, slots=True)
class Check:
    """One named comparison inside a gate.

    `threshold` is None for a figure that is only reported (`op` is then `info`). `interval` is None for a value that is
    a count and not an estimate.
    """

    name: str
    value: float | int | str | bool | None
    op: Literal[">=", "<=", "<", ">", "==", "within", "info"]
    threshold: float | int | str | bool | list[float] | None
    passed: bool
    advice: str = ""
    interval: CheckInterval | None = None

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Check:
        """Return the check in a report.

        Raises:
            KeyError: when a part is missing.
            TypeError: when a part has the wrong type.
        """
        # Unpacked, so that anything but a mapping raises the documented TypeError. Older reports have a check_id.
        said = {name: part for name, part in {**body}.items() if name not in ("undecided", "check_id")}
        return cls(**{**said, "interval": CheckInterval.from_dict(body.get("interval"))})

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready copy; if the interval leaves the value undecided, it says so in words."""
        return {**asdict(self), **({"undecided": words} if (words := self.undecided) else {})}

    @property
    def undecided(self) -> str:
        """A note if the value's interval covers the threshold, with the rows needed to decide; else empty."""
        if self.interval is None or not _is_number(self.value) or not _is_number(self.threshold):
            return ""
        return self.interval.in_words(self.op, self.value, self.threshold)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class GateResult:
    """The verdict of one gate.

    Attributes:
        name: the gate's name, for example `diversity`.
        checks: every comparison, passed or not.
        evidence: path relative to the workspace -> SHA-256 of each file read.
        offenders: up to a few thousand `{id, reason, ...}` records of offending rows.
        waiver: why the gate was not enforced; empty unless `status` is `WAIVED`.
        error: why the gate could not be evaluated; empty unless `status` is `ERROR`.
        waits_for: what has to pass first; empty unless `status` is `WAITING`.
        not_applicable: why there is nothing for it to judge; empty unless `status` is `NOT_APPLICABLE`.
    """

    name: str
    checks: tuple[Check, ...] = ()
    evidence: Mapping[str, str] = field(default_factory=dict)
    offenders: tuple[Mapping[str, Any], ...] = ()
    waiver: str = ""
    error: str = ""
    waits_for: str = ""
    not_applicable: str = ""

    @property
    def status(self) -> Status:
        """The gate's status. An error takes precedence over a waiver, so that a waiver never hides it."""
        if self.error:
            return Status.ERROR
        if self.waits_for:
            return Status.WAITING
        if self.not_applicable:
            return Status.NOT_APPLICABLE
        if self.waiver:
            return Status.WAIVED
        if not any(check.op != "info" for check in self.checks):
            return Status.ERROR
        return Status.PASSED if all(check.passed for check in self.checks) else Status.FAILED

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that did not pass."""
        return tuple(check for check in self.checks if not check.passed)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready copy that includes the status."""
        return {
            **asdict(self),
            "checks": [check.to_dict() for check in self.checks],
            "evidence": dict(self.evidence),
            "status": self.status.value,
        }

    @classmethod
    def from_report(cls, body: Mapping[str, Any]) -> GateResult:
        """Return the verdict in a report, which only counts offenders; otherwise like `from_dict`."""
        return cls.from_dict({**body, "offenders": ()})

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> GateResult:
        """Return the verdict from `to_dict`.

        Raises:
            KeyError: when a part is missing.
            TypeError: when a part has the wrong type.
        """
        return cls(
            name=body["name"],
            checks=tuple(Check.from_dict(one) for one in body["checks"]),
            evidence=dict(body["evidence"]),
            offenders=tuple(body["offenders"]),
            waiver=body["waiver"],
            error=body["error"],
            waits_for=body.get("waits_for", ""),
            not_applicable=body.get("not_applicable", ""),
        )


def waivers_of(results: Iterable[GateResult]) -> dict[str, str]:
    """Return gate -> why it was waived; gates with an error are not among them."""
    return {result.name: result.waiver for result in results if result.status is Status.WAIVED}


def not_applicable_of(results: Iterable[GateResult]) -> dict[str, str]:
    """Return gate -> why it does not apply."""
    return {one.name: one.not_applicable for one in results if one.status is Status.NOT_APPLICABLE}
