"""The environment in OpenEnv's server (extra `openenv`); imported by `server/app.py` of an exported environment."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import uvicorn
from fastapi import FastAPI
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State
from pydantic import Field

from rc1_lib import __version__
from rc1_lib.environment.episode import Episode
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.extras.worlds.served import ServedWorld, opened, paid, take
from rc1_lib.extras.worlds.spec import NAME
from rc1_lib.records import MeasuredRow

_SESSIONS = 64
_DESCRIPTION = (
    "Questions about small worlds: read pages (wiki), calculate (calc), ask the user for what is missing (ask_user) "
    "and only for that, then answer. Verified answers are paid, needless questions and turns cost."
)


class TurnAction(Action):  # type: ignore[misc]
    """One message of the assistant; without a call it is the final answer."""

    content: str = Field(description="The text; it may contain calls as <tool_call>{...}</tool_call>.")
    tool_calls: list[dict[str, Any]] = Field(default_factory=list, description="Calls in the chat format of OpenAI.")


class WorldObservation(Observation):  # type: ignore[misc]
    """The answer to a turn; after a reset, the prompt."""

    messages: list[dict[str, Any]] = Field(description="The messages that are new, in the chat format of OpenAI.")
    status: str = Field(description="running, or how the episode ended.")


class DialogueWorld(Environment):  # type: ignore[misc]
    """One session: one episode at a time; the step that ends it pays the whole reward."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, world: ServedWorld) -> None:
        super().__init__()
        self._world = world
        self._next = 0
        self._playing: tuple[MeasuredRow, Episode] | None = None
        self._state = State(episode_id=str(uuid4()))

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, row: str | None = None, **others: Any
    ) -> WorldObservation:
        """Open the row with this id, or the one drawn by the seed, or the session's next row."""
        if row is not None:
            chosen = self._world.row_of(row)
        else:
            chosen = self._world.row(self._next if seed is None else seed)
            self._next += seed is None
        episode = opened(self._world.spec, chosen)
        self._playing = chosen, episode
        self._state = State(episode_id=episode_id or str(uuid4()), row=chosen["id"], status=episode.status.value)
        return WorldObservation(messages=list(episode.messages), status=episode.status.value)

    def step(self, action: TurnAction, timeout_s: float | None = None, **others: Any) -> WorldObservation:
        """Take a turn of the assistant."""
        if self._playing is None:
            raise RuntimeError("no episode is open in this session; reset it first")
        row, episode = self._playing
        answers = take(episode, action.content, action.tool_calls)
        done = episode.status is not EpisodeStatus.RUNNING
        self._state.step_count += 1
        status = episode.outcome().status.value  # `declined` if the final answer gives no answer
        self._state.status = status
        reward = paid(self._world.spec, row, episode).total if done else 0.0
        return WorldObservation(messages=list(answers), status=status, done=done, reward=reward)

    @property
    def state(self) -> State:
        """The episode, its row, and its number of turns."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """The description of the environment."""
        return EnvironmentMetadata(name=NAME, description=_DESCRIPTION, version=__version__)


def world_app(folder: Path) -> FastAPI:
    """Create OpenEnv's server for the environment in `folder`.

    Raises:
        RC1Error: if the folder has no environment, or its rows do not match the manifest.
    """
    factory = partial(DialogueWorld, ServedWorld.read(folder))
    app: FastAPI = create_app(factory, TurnAction, WorldObservation, env_name=NAME, max_concurrent_envs=_SESSIONS)
    return app


def serve(app: FastAPI) -> None:
    """Serve it at the address on the command line."""
    parser = argparse.ArgumentParser(description="Serve RC1's dialogue world by OpenEnv.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    uvicorn.run(app, host=given.host, port=given.port)
