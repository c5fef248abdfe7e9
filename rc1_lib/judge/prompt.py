"""The judge's instructions, the prompt made of them for one dialogue, and what its scores are bound to.

The dialogue goes in as data. It is one JSON array in which no angle bracket is by itself, between two lines that
hold a number derived from the dialogue's own hash, so that nothing written inside can look like the closing line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
import yaml
from pydantic import Field, ValidationError, field_validator

from rc1_lib.config.judge import JudgeSampling
from rc1_lib.config.strict_yaml import parse_yaml
from rc1_lib.config.values import Section
from rc1_lib.errors import ConfigError
from rc1_lib.judge.calls import Ask
from rc1_lib.judge.providers import request_settings
from rc1_lib.judge.reply import REASON
from rc1_lib.provenance.derived import Given
from rc1_lib.provenance.pinned_files import read_vouched
from rc1_lib.records import Message
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import sha256_json
from rc1_lib.workspace.input_files import read_regular

FOLDER = "configs/judge"
_CALL = ("name", "arguments")
_TAKEN = frozenset(
    "complete dialogue id line model models outcome overall reason replayed sample samples scored scores straddles text"
    " unstable".split()
)
_PLACES = ("{dimensions}", "{opening}", "{closing}")
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
_Sentence = Annotated[str, Field(min_length=10, max_length=400)]


class JudgeSpec(Section):
    """One version of the judge's instructions."""

    spec: str
    """The version, which is the file's name."""
    dimensions: Annotated[dict[_Name, _Sentence], Field(min_length=1)]
    """Name -> the one sentence that defines it."""
    instructions: str
    """The prompt's words, with places for the dimensions and for the lines around the dialogue."""

    @field_validator("dimensions")
    @classmethod
    def _not_taken(cls, dimensions: dict[str, str]) -> dict[str, str]:
        taken = sorted(name for name in dimensions if name in _TAKEN or name.endswith("_variance"))
        if taken:
            raise ValueError(
                f"{', '.join(taken)}: the tables of scores have a column of that name; name the dimension otherwise"
            )
        return dimensions

    @field_validator("instructions")
    @classmethod
    def _has_places(cls, text: str) -> str:
        missing = [place for place in _PLACES if place not in text]
        if missing:
            raise ValueError(f"lacks {', '.join(missing)}, where RC1 writes the dimensions and the dialogue's bounds")
        return text

    @property
    def sha256(self) -> str:
        """Fingerprint of every word of it."""
        return sha256_json([list(self.dimensions), self.model_dump(mode="json")])

    @property
    def schema_of_reply(self) -> dict[str, Any]:
        """The JSON schema that a reply has to satisfy."""
        return {
            "type": "object",
            "properties": {
                REASON: {"type": "string"},
                **{name: {"type": "number", "minimum": 0, "maximum": 1} for name in self.dimensions},
            },
            "required": [REASON, *self.dimensions],
            "additionalProperties": False,
        }


def load_spec(path: Path, name: str, content: bytes | None = None) -> JudgeSpec:
    """Read the instructions of version `name`.

    Args:
        path: of the file.
        name: of the version.
        content: of the file, where it was read already.

    Raises:
        ConfigError: when the file is missing, is not YAML, or does not hold instructions of that name.
    """
    try:
        body = parse_yaml((read_regular(path) if content is None else content).decode())
    except OSError as error:
        raise ConfigError(
            f"{path}: the judge's instructions (judge.spec is '{name}') cannot be read ({error.strerror}); "
            f"write them, or name a version that is in {FOLDER}"
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path}: is not YAML ({' '.join(str(error).split())}); correct the file") from None
    try:
        spec = JudgeSpec.model_validate(body)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the file"
        raise ConfigError(f"{path}: {where}: {fault['msg']}; correct the judge's instructions") from None
    if spec.spec != name:
        raise ConfigError(f"{path}: says spec: {spec.spec}, expected {name}, the name of the file and of judge.spec")
    return spec


JUDGE_SPEC = Given(
    "judge_spec",
    lambda run: f"{FOLDER}/{run.config.judge.spec}.yaml",
    wanted=lambda run: run.config.pays_judged_score,
)


def read_spec(run: Run) -> JudgeSpec:
    """The instructions that `judge.spec` names.

    Raises:
        ConfigError: when they are missing or damaged.
        TicketError: when they are not those that the ticket vouches for.
    """
    path = JUDGE_SPEC.path(run)
    content = None if run.vouched is None else read_vouched(run, JUDGE_SPEC.name, path)
    return load_spec(path, run.config.judge.spec, content)


def judge_identity(run: Run) -> dict[str, str]:
    """Who judges, and by which words: what a ticket names.

    Raises:
        ConfigError: when the instructions are missing or damaged.
    """
    judge = run.config.judge
    return {
        "provider": judge.provider,
        "model": judge.model or "",
        "spec": judge.spec,
        "spec_sha256": read_spec(run).sha256,
    }


def scoring_settings(run: Run) -> dict[str, Any]:
    """All settings that decide what a dialogue is scored with, and whether its scores count in full."""
    judge = run.config.judge
    return {
        **judge_identity(run),
        "base_url": judge.base_url or "",
        **request_settings(judge),
        "samples": judge.samples,
        "max_variance": run.config.gates.stability.max_variance,
    }


def misfit(messages: object) -> str:
    """What keeps `messages` from being a dialogue that can be judged, in words; empty when nothing does."""
    if not isinstance(messages, list) or not messages:
        return "'messages' is no list of chat messages with at least one in it"
    for place, message in enumerate(messages, 1):
        fault = _misfit(message)
        if fault:
            return f"message {place} {fault}"
    if not any(message["role"] == "assistant" for message in messages):
        return "no message is the assistant's, so there is nothing to judge"
    return ""


def _misfit(message: object) -> str:
    if not isinstance(message, Mapping):
        return "is no object"
    if not isinstance(message.get("role"), str) or not message["role"]:
        return "has no role"
    if not isinstance(message.get("content"), str | None):
        return f"holds a {type(message['content']).__name__} as its content, expected a text"
    calls = message.get("tool_calls")
    if not isinstance(calls, list | None):
        return "has tool_calls that are no list"
    for call in calls or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not all(isinstance(function.get(key), str) for key in _CALL):
            return "has a tool call without a function's name and arguments as texts"
    return ""


def canonical(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The dialogue as it is graded: role, content and tool calls, without what is empty or means nothing to a judge."""
    return [
        {
            "role": message["role"],
            "content": message.get("content") or "",
            **({"tool_calls": calls} if (calls := _calls(message)) else {}),
        }
        for message in messages
    ]


def dialogue_sha256(messages: Sequence[Message]) -> str:
    """Fingerprint of the dialogue as it is graded."""
    return sha256_json(canonical(messages))


def write_ask(spec: JudgeSpec, sampling: JudgeSampling, messages: Sequence[Message], sample: int) -> Ask:
    """What is sent for one sample of a dialogue, always the same for the same input; an attempt adds its ids."""
    data = orjson.dumps(canonical(messages)).replace(b"<", b"\\u003c").replace(b">", b"\\u003e")
    nonce = hashlib.sha256(f"{sample}\0".encode() + data).hexdigest()[:16]
    opening, closing = f"<dialogue-{nonce}>", f"</dialogue-{nonce}>"
    shown = "\n".join(f"- {name}: {sentence}" for name, sentence in spec.dimensions.items())
    system = spec.instructions
    for place, text in zip(_PLACES, (shown, opening, closing), strict=True):
        system = system.replace(place, text)
    user = f"{opening}\n{data.decode()}\n{closing}"
    return Ask(system, user, spec.schema_of_reply, sampling, "", "", messages)


def _calls(message: Message) -> list[dict[str, str]]:
    calls: Sequence[Mapping[str, Any]] = message.get("tool_calls") or ()
    return [{"name": call["function"]["name"], "arguments": call["function"]["arguments"]} for call in calls]
