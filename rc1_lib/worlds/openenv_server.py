"""The dialogue world behind OpenEnv's own server (extra `openenv`); `server/app.py` of an exported world imports it."""

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
from rc1_lib.records import MeasuredRow
from rc1_lib.worlds.served import ServedWorld, opened, paid, take
from rc1_lib.worlds.spec import NAME

_SESSIONS = 64
_DESCRIPTION = (
    "Questions about small worlds: read pages (wiki), calculate (calc), ask the user for what is missing (ask_user) "
    "and only for that, then answer. Verified answers are paid, needless questions and turns cost."
)


class TurnAction(Action):  # type: ignore[misc]
    """One message of the assistant; without a call it is the final answer."""

    content: str = Field(description="What is said; calls may stand in it as <tool_call>{...}</tool_call>.")
    tool_calls: list[dict[str, Any]] = Field(default_factory=list, description="Calls in the chat format of OpenAI.")


class WorldObservation(Observation):  # type: ignore[misc]
    """What answers a turn; behind a reset the prompt."""

    messages: list[dict[str, Any]] = Field(description="The messages that are new, in the chat format of OpenAI.")
    status: str = Field(description="running, or how the episode ended.")


class DialogueWorld(Environment):  # type: ignore[misc]
    """One session: an episode at a time, paid in full by the step that ends it."""

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
        """Open the row of that id, or the one that the seed draws, or the next of this session."""
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
        self._state.status = episode.status.value
        reward = paid(self._world.spec, row, episode).total if done else 0.0
        return WorldObservation(messages=list(answers), status=episode.status.value, done=done, reward=reward)

    @property
    def state(self) -> State:
        """Which episode this is, of which row, and how many turns it has had."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """What the world is."""
        return EnvironmentMetadata(name=NAME, description=_DESCRIPTION, version=__version__)


def world_app(folder: Path) -> FastAPI:
    """OpenEnv's server of the world in `folder`.

    Raises:
        RC1Error: when the folder holds no world, or other rows than its manifest names.
    """
    factory = partial(DialogueWorld, ServedWorld.read(folder))
    app: FastAPI = create_app(factory, TurnAction, WorldObservation, env_name=NAME, max_concurrent_envs=_SESSIONS)
    return app


def serve(app: FastAPI) -> None:
    """Serve it where the command line says."""
    parser = argparse.ArgumentParser(description="Serve RC1's dialogue world by OpenEnv.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    uvicorn.run(app, host=given.host, port=given.port)
