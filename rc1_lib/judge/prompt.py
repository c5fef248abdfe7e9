"""The judge's instructions, and the prompt made of them for one dialogue.

The dialogue goes in as data. It is one JSON array in which no angle bracket stands by itself, between two lines that
hold a number derived from the dialogue's own hash, so that nothing written inside can look like the closing line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
import yaml
from pydantic import Field, ValidationError, field_validator

from rc1_lib.config.strict_yaml import parse_yaml
from rc1_lib.config.values import Section
from rc1_lib.errors import ConfigError
from rc1_lib.judge.reply import REASON
from rc1_lib.provenance.derived import Given
from rc1_lib.records import Message
from rc1_lib.workspace.artifacts import sha256_json
from rc1_lib.workspace.input_files import read_regular

FOLDER = "configs/judge"
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


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent for one sample of one dialogue."""

    system: str
    user: str


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


def write_prompt(spec: JudgeSpec, messages: Sequence[Message], sample: int) -> Prompt:
    """The prompt for one sample of a dialogue; the same input always gives the same prompt."""
    data = orjson.dumps(canonical(messages)).replace(b"<", b"\\u003c").replace(b">", b"\\u003e")
    nonce = hashlib.sha256(f"{sample}\0".encode() + data).hexdigest()[:16]
    opening, closing = f"<dialogue-{nonce}>", f"</dialogue-{nonce}>"
    shown = "\n".join(f"- {name}: {sentence}" for name, sentence in spec.dimensions.items())
    system = spec.instructions
    for place, text in zip(_PLACES, (shown, opening, closing), strict=True):
        system = system.replace(place, text)
    return Prompt(system, f"{opening}\n{data.decode()}\n{closing}")


def _calls(message: Message) -> list[dict[str, str]]:
    calls: Sequence[Mapping[str, Any]] = message.get("tool_calls") or ()
    return [{"name": call["function"]["name"], "arguments": call["function"]["arguments"]} for call in calls]


JUDGE_SPEC = Given(
    "judge_spec",
    lambda run: f"{FOLDER}/{run.config.judge.spec}.yaml",
    wanted=lambda run: run.config.pays_judged_score,
)
