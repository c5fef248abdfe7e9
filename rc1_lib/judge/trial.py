"""Finding the settings that a server takes: one call at a time, each changed as the last refusal or reply asks for.

The dialogues are small ones that RC1 ships.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from rc1_lib.config.file import load_config
from rc1_lib.config.strict_yaml import parse_yaml
from rc1_lib.judge.calls import AttemptOutcome
from rc1_lib.judge.judge import check_judge, open_judge, open_store
from rc1_lib.records import Message
from rc1_lib.run import Run

_MOST = 8
"""Calls of one trial: a server that refuses every parameter takes seven."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What trying came to.

    Attributes:
        settings: `KEY=VALUE`, what has to be set; empty where nothing has to, or nothing is known to help.
        works: whether the judge gave scores under them.
        calls: that were sent.
        reason: why the first call gave no scores; empty where it did.
        late: whether no whole reply came in time, with nothing else under way.
    """

    settings: tuple[str, ...]
    works: bool
    calls: int
    reason: str
    late: bool = False


def trial_store(run: Run) -> str:
    """The store that takes a trial's calls, below the workspace: the gates' own log is of one kind of call."""
    path = PurePosixPath(run.config.judge.store.path)
    return str(path.with_name(f"{path.stem}.trial{path.suffix}"))


def find_settings(run: Run, messages: Sequence[Message]) -> Trial:
    """Ask the judge about one dialogue until it gives scores, or nothing is left to change.

    Args:
        run: whose judge.
        messages: the dialogue.

    Raises:
        ConfigError: when the judge cannot be asked at all.
        RC1Error: when the store cannot be written.
    """
    check_judge(run)
    found: dict[str, str] = {}
    tried: set[str] = set()
    calls, first = 0, ""
    with open_store(run, trial_store(run)) as store:
        judge = open_judge(run, store)
        for _ in range(_MOST):
            config = load_config(run.config_path, (*run.overrides, *found.values())).judge
            limits = config.limits.model_copy(update={"attempts": 2, "bad_reply_attempts": 1, "concurrency": (1, 1)})
            once = config.model_copy(update={"samples": 1, "limits": limits})
            judged = replace(judge, config=once).score([messages], fresh=True)
            calls += judged.calls
            if judged.coverage == 1.0:
                return Trial(tuple(found.values()), True, calls, first)
            first = first or judged.stopped or judged.why_unscored
            if judged.replies["outcome"].item() == AttemptOutcome.TIMEOUT:
                return Trial((), False, calls, judged.reasons[0][0], late=True)
            fresh = [one for one in judged.remedies if one not in tried]
            if not fresh:
                break
            tried.add(fresh[0])
            found[fresh[0].partition("=")[0]] = fresh[0]
    return Trial((), False, calls, first)


def probe_dialogues() -> list[list[Message]]:
    """Small dialogues in English and Chinese, in chat format, all different."""
    file = Path(__file__).with_name("probe_dialogues.yaml")
    found: list[list[Message]] = parse_yaml(file.read_text(encoding="utf-8"))
    return found
