"""Play an exported environment: the rows of its folder, with the manifest's limits and rewards."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson

from rc1_lib.environment.episode import Episode
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.environment.rewards import RewardTerms, reward_terms
from rc1_lib.environment.world import World
from rc1_lib.errors import RC1Error
from rc1_lib.extras.worlds.spec import ROWS, WorldSpec
from rc1_lib.records import MeasuredRow, Message
from rc1_lib.rows.chat import ANSWER_MARK, ARGUMENT_OF, ASK
from rc1_lib.workspace.input_files import read_regular


@dataclass(frozen=True, slots=True)
class ServedWorld:
    """The rows of a folder with its manifest.

    Attributes:
        spec: limits and reward settings.
        lines: the rows as text, parsed when opened.
        place: a row's id -> its place.
    """

    spec: WorldSpec
    lines: Sequence[bytes]
    place: Mapping[str, int]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the environment in `folder`.

        Raises:
            RC1Error: if it has no manifest of an environment, or its rows do not match the manifest.
        """
        spec, path = WorldSpec.read(folder), folder / ROWS
        try:
            content = read_regular(path)
        except OSError as error:
            raise RC1Error(f"{path}: cannot be read ({error.strerror}), expected the environment's rows") from None
        found = hashlib.sha256(content).hexdigest()
        if found != spec.rows_sha256:
            raise RC1Error(
                f"{path}: has the SHA-256 {found}, but its manifest says {spec.rows_sha256}; export the environment "
                f"again: rc1 world export"
            )
        lines = content.splitlines()
        return cls(spec, lines, {orjson.loads(line)["id"]: place for place, line in enumerate(lines)})

    def row(self, place: int) -> MeasuredRow:
        """Return the row at a place. Places beyond the last one wrap around."""
        row: MeasuredRow = orjson.loads(self.lines[place % len(self.lines)])
        return row

    def row_of(self, id_: str) -> MeasuredRow:
        """Return the row with an id.

        Raises:
            RC1Error: if there is none.
        """
        if id_ not in self.place:
            raise RC1Error(f"row '{id_}' is not in this environment, expected one of its {len(self.lines):,} ids")
        return self.row(self.place[id_])


def opened(spec: WorldSpec, row: MeasuredRow) -> Episode:
    """Start an episode on `row`."""
    return Episode(World(row), spec.limits)


def paid(spec: WorldSpec, row: MeasuredRow, episode: Episode) -> RewardTerms:
    """Compute the reward terms of an episode on `row`."""
    return reward_terms(episode.outcome(), row["bucket"], spec.reward)


def take(
    episode: Episode, content: str | None, calls: Sequence[Mapping[str, Any]] | None, *, cut: bool = False
) -> list[Message]:
    """Take a turn with parsed calls, or with calls in its text, and return the answers."""
    if calls:
        return episode.send({"content": content, "tool_calls": list(calls)}, cut=cut)
    return episode.say(content or "", cut=cut)


def replayed(
    spec: WorldSpec, row: MeasuredRow, turns: Iterable[Mapping[str, Any]], *, cut: bool = False
) -> tuple[Episode, RewardTerms]:
    """Replay the episode of a model's messages, and compute its terms; messages after its end are ignored.

    Args:
        spec: limits and reward settings.
        cut: whether the last one was cut off.
    """
    episode, said = opened(spec, row), list(turns)
    for place, turn in enumerate(said):
        if episode.status is EpisodeStatus.RUNNING:
            take(episode, turn.get("content"), turn.get("tool_calls"), cut=cut and place == len(said) - 1)
    return episode, paid(spec, row, episode)


def reference_turns(row: MeasuredRow) -> list[dict[str, Any]]:
    """Return turns that should solve a row: ask for the missing information, and give the known answer."""
    answer = {"role": "assistant", "content": f"{ANSWER_MARK[row['lang']]}{row['answer']}"}
    slot = row.get("slot")
    if not row["needs_clarification"] or slot is None:
        return [answer]
    arguments = orjson.dumps({ARGUMENT_OF[ASK]: slot["wanted"]}).decode()
    return [
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": ASK, "arguments": arguments}}]},
        answer,
    ]
