"""RC1's reward as other trainers call it: limits and prices from the export's folder, the dialogue played again.

The rule, the world and the terms are RC1's own code. A dialogue's messages alone decide its reward, because the same
calls always get the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import orjson

from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.errors import RC1Error, RowError
from rc1_lib.extras.exports.spec import WorldSpec
from rc1_lib.records import BUCKETS, MeasuredRow
from rc1_lib.workspace.artifacts import read_json
from rc1_lib.workspace.file_hashes import sha256_file

SETTINGS, TABLE = "rc1_reward.json", "rows.parquet"
SAID = "rc1_said"
"""Where verl's loop leaves the turns of a dialogue for `compute_score`."""
WORLD = (
    "id", "task", "lang", "messages", "answer", "aliases", "needs_clarification", "slot", "user_replies", "passages",
    "bucket",
)  # fmt: skip
"""The columns that decide an episode and its reward; of `messages` those before the assistant's first."""
RewardFunction = Callable[..., list[float]]


def read_settings(folder: Path) -> WorldSpec:
    """Read limits and prices of the export in `folder`, whose rows must be those that the ticket vouched for.

    Raises:
        RC1Error: if `rc1_reward.json` is missing, or has another form, or the rows have changed since the export.
    """
    path = folder / SETTINGS
    try:
        own = read_json(path)
    except FileNotFoundError:
        raise RC1Error(f"{path}: is missing, expected limits and prices; export the folder again") from None
    except (OSError, ValueError) as error:
        raise RC1Error(f"{path}: cannot be read ({error}), expected limits and prices; export it again") from None
    if not isinstance(own, dict):
        raise RC1Error(f"{path}: found {type(own).__name__}, expected an object; export it again")
    spec = WorldSpec.of_section(own, f"{path}: ")
    if (found := sha256_file(folder / TABLE)) != spec.rows_sha256:
        raise RC1Error(f"{folder / TABLE}: has the SHA-256 {found}, expected {spec.rows_sha256}; export it again")
    return spec


def reward_of(
    spec: WorldSpec, row: Mapping[str, Any], said: Iterable[Mapping[str, Any]], *, cut: bool = False
) -> float:
    """Return the reward of a dialogue.

    Args:
        row: with the columns `WORLD`.
        said: its messages; only the assistant's count. One without a role is the assistant's.
        cut: whether the last one was cut off.

    Raises:
        RowError: if the row lacks what its environment needs.
    """
    if row.get("bucket") not in BUCKETS:
        raise RowError(f"row '{row.get('id')}': bucket is {row.get('bucket')!r}, expected one of {', '.join(BUCKETS)}")
    turns = [message for message in said if message.get("role", "assistant") == "assistant"]
    measured = cast("MeasuredRow", row)
    episode = spec.opened(measured)
    for place, turn in enumerate(turns):
        if episode.status is not EpisodeStatus.RUNNING:
            break  # what comes after the end is ignored
        content, is_cut = turn.get("content"), cut and place == len(turns) - 1
        if calls := turn.get("tool_calls"):
            episode.send({"content": content, "tool_calls": list(calls)}, cut=is_cut)
        else:
            episode.say(content or "", cut=is_cut)
    return spec.paid(measured, episode)


def reward_function(spec: WorldSpec) -> RewardFunction:
    """Return `f(prompts, completions, **columns)`, as TRL calls it: one reward per completion.

    A completion is a list of messages, or the text of one turn. The columns are those of the export.
    """

    def rc1_reward(prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float]:
        if missing := [name for name in WORLD if name not in columns and name != "messages"]:
            raise RC1Error(f"the rows lack the columns {', '.join(missing)}; give all columns of the export")
        rewards = []
        for place, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
            row = {"messages": prompt, **{name: columns[name][place] for name in WORLD if name in columns}}
            said = [{"content": completion}] if isinstance(completion, str) else completion
            rewards.append(reward_of(spec, row, said))
        return rewards

    return rc1_reward


def verl_score(spec: WorldSpec) -> Callable[..., float]:
    """Return verl's `compute_score(data_source, solution_str, ground_truth, extra_info)`.

    The turns come from RC1's agent loop in `extra_info`: in `solution_str`, where they are joined with the answers, the
    policy could forge a tool's result.
    """

    def compute_score(
        data_source: object,
        solution_str: str,
        ground_truth: object,
        extra_info: Mapping[str, Any] | None = None,
        **settings: object,
    ) -> float:
        given = extra_info or {}
        if SAID not in given:
            raise RC1Error(
                f"extra_info has no '{SAID}': the dialogue was not played by RC1's agent loop; keep the column "
                f"agent_name, and set actor_rollout_ref.rollout.agent.agent_loop_config_path=rc1_loop.yaml"
            )
        said = given[SAID]
        return reward_of(spec, row_of(given.get("row"), "extra_info.row"), said["messages"], cut=said["cut"])

    return compute_score


def row_of(text: object, where: str) -> dict[str, Any]:
    """Parse an exported row.

    Raises:
        RC1Error: if it is not one; names `where` it should be.
    """
    try:
        row = orjson.loads(cast("str", text))
    except orjson.JSONDecodeError:
        row = None
    if not isinstance(row, dict):
        raise RC1Error(f"{where}: found {str(text)[:60]!r}, expected a row as JSON; use the rows of the export")
    return row
