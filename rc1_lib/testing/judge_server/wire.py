"""What the wire protocols have in common: a prompt comes in, a reply or an error goes out."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

from rc1_lib.scoring.calls import Finish
from rc1_lib.testing.judge_server.connection import Request, Response
from rc1_lib.testing.judge_server.tokens import tokens

_TOKENS_OF_A_MESSAGE = 4
"""What a chat template adds to each message: role and delimiters."""


class BadRequestError(Exception):
    """A request that is not of the protocol, or asks for what the test double does not do."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a client asks.

    Attributes:
        system: the instructions.
        messages: the texts of all other messages, in order.
        dimensions: what is to be graded, where a schema names it.
        max_tokens: how long the reply may be, where that is said.
    """

    system: str
    messages: tuple[str, ...]
    dimensions: tuple[str, ...] | None
    max_tokens: int | None

    @property
    def tokens(self) -> int:
        """Tokens of the prompt, roughly."""
        return sum(_TOKENS_OF_A_MESSAGE + tokens(text) for text in (self.system, *self.messages) if text)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says.

    Attributes:
        text: the reply; empty in a refusal.
        thoughts: what it thought before, if anything.
        finish: how it ended.
        prompt_blocked: of a refusal, whether the prompt was blocked before the model read it.
        tokens_in: tokens of the prompt.
        tokens_thought: tokens of the thoughts.
        tokens_text: tokens of the text or of the words that decline.
    """

    text: str
    thoughts: str
    finish: Finish
    prompt_blocked: bool
    tokens_in: int
    tokens_thought: int
    tokens_text: int

    @property
    def tokens_out(self) -> int:
        """Everything that was written."""
        return self.tokens_thought + self.tokens_text


@dataclass(frozen=True, slots=True)
class Marks:
    """What a response says of itself: the model's version, the reply's number (None: no id), whether usage is told."""

    model: str
    reply_id: str | None
    usage: bool


class Wire(Protocol):
    """A wire protocol, as the server speaks it."""

    name: str

    def key(self, request: Request) -> str:
        """The API key that was sent; empty when none was."""
        ...

    def prompt(self, body: Mapping[str, Any]) -> Prompt:
        """Read a request.

        Raises:
            BadRequestError: when it is none.
        """
        ...

    def reply(self, reply: Reply, marks: Marks) -> Response:
        """The response that holds a reply."""
        ...

    def empty(self, marks: Marks) -> Response:
        """A response without any reply in it."""
        ...

    def error(self, status: int, message: str, wait: float | None = None) -> Response:
        """The provider's way to say what went wrong.

        Args:
            status: HTTP status.
            message: for people.
            wait: seconds after which to try again, for the body, where the protocol has a place for it.
        """
        ...

    def models(self, model: str) -> Response:
        """The list of models."""
        ...


def seconds(retry_after: float | str | None) -> float | None:
    """What a value of `Retry-After` means in seconds from now; None when it means nothing."""
    if retry_after is None:
        return None
    try:
        wait = float(retry_after)
    except ValueError:
        try:
            wait = parsedate_to_datetime(str(retry_after)).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, wait) if math.isfinite(wait) else None


def header(retry_after: float | str) -> str:
    """The header's text: whole seconds without a point."""
    return retry_after if isinstance(retry_after, str) else f"{retry_after:.15g}"


def properties(schema: Any) -> tuple[str, ...] | None:
    """The dimensions that a JSON schema names: its properties, the reason excepted."""
    named = schema.get("properties") if isinstance(schema, dict) else None
    return tuple(name for name in named if name != "reason") if isinstance(named, dict) else None
