"""Find settings that a server accepts, one call at a time: each call applies the remedy that the last one suggested.

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
"""Most calls of one trial: a server that refuses every parameter needs seven."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial.

    Attributes:
        settings: settings to make (`KEY=VALUE`); empty if none is needed, or none is known to help.
        works: whether the judge gave scores under them.
        calls: calls sent.
        reason: why the first call gave no scores; empty if it did.
        late: whether no complete reply came in time although nothing else was in flight.
    """

    settings: tuple[str, ...]
    works: bool
    calls: int
    reason: str
    late: bool = False


def trial_store(run: Run) -> str:
    """Return the path of the trial's store, relative to the workspace. It keeps trial calls out of the gates' log."""
    path = PurePosixPath(run.config.judge.store.path)
    return str(path.with_name(f"{path.stem}.trial{path.suffix}"))


def find_settings(run: Run, messages: Sequence[Message]) -> Trial:
    """Ask the judge about one dialogue until it gives scores or no untried remedy is left.

    Args:
        run: gives the judge.
        messages: the dialogue.

    Raises:
        ConfigError: if the judge cannot be asked at all.
        RC1Error: if the store cannot be written.
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
            fresh = [remedy for remedy in judged.remedies if remedy not in tried]
            if not fresh:
                break
            tried.add(fresh[0])
            found[fresh[0].partition("=")[0]] = fresh[0]
    return Trial((), False, calls, first)


def probe_dialogues() -> list[list[Message]]:
    """Read the shipped small dialogues: English and Chinese, in chat format, all different."""
    file = Path(__file__).with_name("probe_dialogues.yaml")
    found: list[list[Message]] = parse_yaml(file.read_text(encoding="utf-8"))
    return found
