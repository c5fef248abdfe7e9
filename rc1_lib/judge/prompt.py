"""The judge's instructions, the prompt for one dialogue, and the settings that its scores depend on.

The dialogue is data: a JSON array with escaped angle brackets, between two lines that hold a number derived from the
dialogue's hash. So nothing inside the dialogue can pass for the closing line.
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
_RESERVED = frozenset(
    "complete dialogue id line model models outcome overall reason replayed sample samples scored scores straddles text"
    " unstable".split()
)
_PLACEHOLDERS = ("{dimensions}", "{opening}", "{closing}")
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
_Sentence = Annotated[str, Field(min_length=10, max_length=400)]


class JudgeSpec(Section):
    """One version of the judge's instructions."""

    spec: str
    """The version, equal to the file's name."""
    dimensions: Annotated[dict[_Name, _Sentence], Field(min_length=1)]
    """Maps each dimension's name to the sentence that defines it."""
    instructions: str
    """The prompt, with placeholders for the dimensions and for the lines around the dialogue."""

    @field_validator("dimensions")
    @classmethod
    def _not_reserved(cls, dimensions: dict[str, str]) -> dict[str, str]:
        reserved = sorted(name for name in dimensions if name in _RESERVED or name.endswith("_variance"))
        if reserved:
            raise ValueError(f"{', '.join(reserved)}: reserved for a column of the score tables; rename the dimension")
        return dimensions

    @field_validator("instructions")
    @classmethod
    def _has_placeholders(cls, text: str) -> str:
        missing = [placeholder for placeholder in _PLACEHOLDERS if placeholder not in text]
        if missing:
            raise ValueError(
                f"lacks {', '.join(missing)}; RC1 fills these in with the dimensions and the lines around the dialogue"
            )
        return text

    @property
    def sha256(self) -> str:
        """SHA-256 of the whole content, including the order of the dimensions."""
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
        content: the file's content, if it was read already.

    Raises:
        ConfigError: if the file is missing, is not YAML, or does not hold instructions of that name.
    """
    try:
        body = parse_yaml((read_regular(path) if content is None else content).decode())
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot read the judge's instructions ({error.strerror}); judge.spec is '{name}'. "
            f"Write the file, or set judge.spec to a version in {FOLDER}"
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path}: not valid YAML ({' '.join(str(error).split())}); correct the file") from None
    try:
        spec = JudgeSpec.model_validate(body)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the file"
        raise ConfigError(f"{path}: {where}: {fault['msg']}; correct the judge's instructions") from None
    if spec.spec != name:
        raise ConfigError(f"{path}: spec is {spec.spec}, expected {name}, the name of the file and of judge.spec")
    return spec


JUDGE_SPEC = Given(
    "judge_spec",
    lambda run: f"{FOLDER}/{run.config.judge.spec}.yaml",
    wanted=lambda run: run.config.pays_judged_score,
)


def read_spec(run: Run) -> JudgeSpec:
    """Read the instructions that `judge.spec` names.

    Raises:
        ConfigError: if they are missing or damaged.
        TicketError: if they are not those that the ticket pins.
    """
    path = JUDGE_SPEC.path(run)
    content = None if run.vouched is None else read_vouched(run, JUDGE_SPEC.name, path)
    return load_spec(path, run.config.judge.spec, content)


def judge_identity(run: Run) -> dict[str, str]:
    """Return provider, model and instructions of the judge, as a ticket records them.

    Raises:
        ConfigError: if the instructions are missing or damaged.
    """
    judge = run.config.judge
    return {
        "provider": judge.provider,
        "model": judge.model or "",
        "spec": judge.spec,
        "spec_sha256": read_spec(run).sha256,
    }


def scoring_settings(run: Run) -> dict[str, Any]:
    """Return all settings that affect a dialogue's scores, or whether they count as stable."""
    judge = run.config.judge
    return {
        **judge_identity(run),
        "base_url": judge.base_url or "",
        **request_settings(judge),
        "samples": judge.samples,
        "max_variance": run.config.gates.stability.max_variance,
    }


def misfit(messages: object) -> str:
    """Say why `messages` cannot be judged, in words; empty if it can."""
    if not isinstance(messages, list) or not messages:
        return "'messages' is not a list of at least one chat message"
    for number, message in enumerate(messages, 1):
        fault = _misfit(message)
        if fault:
            return f"message {number} {fault}"
    if not any(message["role"] == "assistant" for message in messages):
        return "no message is the assistant's, so there is nothing to judge"
    return ""


def _misfit(message: object) -> str:
    if not isinstance(message, Mapping):
        return "is not an object"
    if not isinstance(message.get("role"), str) or not message["role"]:
        return "has no role"
    if not isinstance(message.get("content"), str | None):
        return f"has a {type(message['content']).__name__} as its content, expected a string"
    calls = message.get("tool_calls")
    if not isinstance(calls, list | None):
        return "has tool_calls that are not a list"
    for call in calls or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not all(isinstance(function.get(key), str) for key in _CALL):
            return "has a tool call whose function lacks a name or arguments as strings"
    return ""


def canonical(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the dialogue as it is graded: role, content and tool calls, without other or empty fields."""
    return [
        {
            "role": message["role"],
            "content": message.get("content") or "",
            **({"tool_calls": calls} if (calls := _calls(message)) else {}),
        }
        for message in messages
    ]


def dialogue_sha256(messages: Sequence[Message]) -> str:
    """Return the SHA-256 of the dialogue as it is graded."""
    return sha256_json(canonical(messages))


def write_ask(spec: JudgeSpec, sampling: JudgeSampling, messages: Sequence[Message], sample: int) -> Ask:
    """Write the request for one sample of a dialogue, deterministically; each attempt adds its ids."""
    data = orjson.dumps(canonical(messages)).replace(b"<", b"\\u003c").replace(b">", b"\\u003e")
    nonce = hashlib.sha256(f"{sample}\0".encode() + data).hexdigest()[:16]
    opening, closing = f"<dialogue-{nonce}>", f"</dialogue-{nonce}>"
    shown = "\n".join(f"- {name}: {sentence}" for name, sentence in spec.dimensions.items())
    system = spec.instructions
    for placeholder, text in zip(_PLACEHOLDERS, (shown, opening, closing), strict=True):
        system = system.replace(placeholder, text)
    user = f"{opening}\n{data.decode()}\n{closing}"
    return Ask(system, user, spec.schema_of_reply, sampling, "", "", messages)


def _calls(message: Message) -> list[dict[str, str]]:
    calls: Sequence[Mapping[str, Any]] = message.get("tool_calls") or ()
    return [{"name": call["function"]["name"], "arguments": call["function"]["arguments"]} for call in calls]
