"""The step profile: times of parts add up, spans do not overlap, and no file of the run changes."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from rc1_lib.config.engines import ENGINES, EngineSpec, LearnsFrom
from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.ppo_run import prepare
from rc1_lib.training.profiler import Section
from rc1_lib.training.step_profile import REPORT, REST, TRACE, profile_step
from rc1_lib.workspace.artifacts import read_json

Tiny = Callable[..., Run]


def test_seconds_of_a_step_add_up_and_spans_do_not_overlap(tiny: Tiny) -> None:
    run = tiny("training.shards=2", "training.processes=1")
    report = profile_step(prepare(run), run.config.seeds[0])
    assert report == read_json(run.workspace.path(REPORT))
    (process,) = report["processes"]
    assert report["parts"] == [*Section, REST]
    assert sum(process["seconds"].values()) == pytest.approx(report["seconds"])
    assert {part for part, spans in process["spans"].items() if not spans} == {Section.ENCODE, Section.OTHERS}
    events = [one for one in read_json(run.workspace.path(TRACE))["traceEvents"] if one["ph"] == "X"]
    for before, after in itertools.pairwise(sorted(events, key=lambda one: one["ts"])):
        assert before["ts"] + before["dur"] <= after["ts"] + 1e-3, (before, after)
    assert not run.workspace.path("checkpoints/rc1").exists()


def test_engine_without_timing_is_rejected(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "mute", EngineSpec("tests.training.registered:Mute", LearnsFrom.EPISODES))
    run = tiny("training.engine=mute")
    with pytest.raises(ConfigError, match=r"--profile-step: .*'mute'.*torch_ppo"):
        profile_step(prepare(run), 1)
