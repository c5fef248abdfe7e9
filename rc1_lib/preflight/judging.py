"""How the judge's gates come by their evidence: by asking, and by reading the usage log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rc1_lib.errors import RC1Error
from rc1_lib.gates.anti_simulation import anti_simulation_gate
from rc1_lib.gates.checks import info
from rc1_lib.gates.judge_probe import probe_gate
from rc1_lib.gates.judge_stability import stability_gate
from rc1_lib.preflight.evidence import Evidence
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.scoring.judge import check_judge, open_judge, open_store, read_spec
from rc1_lib.scoring.store import Store
from rc1_lib.testing.mark import is_test_double


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


def probe(evidence: Evidence) -> GateResult:
    """Ask the judge about the first dialogues of the shadow set, past everything that is stored."""
    run = evidence.run
    judge, thresholds = run.config.judge, run.config.gates.probe
    dialogues = evidence.rows("shadow").head(thresholds.n)["messages"].to_list()
    check_judge(run)
    with open_store(run) as store:
        judged = open_judge(run, store).score(dialogues, fresh=True)
        lines = store.log(judged.run_id)
    if judged.stopped:
        raise RC1Error(f"the judge '{judge.provider}' stopped: {judged.stopped}")
    result = probe_gate(
        lines,
        provider=judge.provider,
        asked=judged.rows["dialogue"].n_unique(),
        samples=judge.samples,
        thresholds=thresholds,
    )
    return _marked(result, lines["model"].to_list())


def anti_simulation(evidence: Evidence, number: int) -> GateResult:
    """Read the last scorings of the judge in use, and check that the log is as it was written."""
    config = evidence.run.config
    with _existing_store(evidence.run) as store:
        damage, log = store.damage(), store.log()
    own = log.filter(log["provider"] == config.judge.provider)
    result = anti_simulation_gate(
        own,
        damage=damage,
        round_name="round1" if number == 1 else "round2",
        samples=config.judge.samples,
        now=time.time(),
        thresholds=config.gates.anti_simulation,
    )
    return _marked(result, own["model"].to_list())


def stability(evidence: Evidence) -> GateResult:
    """Read how far the judge's samples of the same dialogue lie apart, and how many dialogues have no score."""
    config = evidence.run.config
    with _existing_store(evidence.run) as store:
        log = store.log()
    result = stability_gate(log, samples=config.judge.samples, thresholds=config.gates.stability)
    return _marked(result, log["model"].to_list())


@contextmanager
def _existing_store(run: Run) -> Iterator[Store]:
    path = run.workspace.path(run.config.judge.store.path)
    if not path.is_file():
        raise RC1Error(f"{path}: there is no usage log yet, so nothing shows that anybody scored; run the probe first")
    with open_store(run) as store:
        yield store


def _marked(result: GateResult, models: list[Any]) -> GateResult:
    """The verdict, marked where RC1's own test double had a part in it."""
    if not any(is_test_double(model or "") for model in models):
        return result
    return replace(result, checks=(*result.checks, info("TEST DOUBLE: these scores are made up", True)))
