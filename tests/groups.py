"""Which tests share a worker, and which run first.

pytest-xdist's own `xdist_group` silently has no effect with this version of pytest, since xdist writes the group into a
part of the test's name that no longer exists.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

FLOWS, CALIBRATIONS = "flows", "calibrations"
"""Groups that start flows: their worker has a Prefect server, and tests do not share artifacts."""
WITH_SERVER = frozenset((FLOWS, CALIBRATIONS))

_FLOWS_OF_COMMANDS = {
    "test_policy_that_fails_the_evaluation_is_reported_and_training_resumes": FLOWS,
    "test_fault_during_training_exits_1_with_report_and_debug_bundle": FLOWS,
    "test_failed_calibrate_writes_a_debug_bundle_and_keeps_the_weights": CALIBRATIONS,
    "test_ticket_is_issued_verified_and_revoked": CALIBRATIONS,
    "test_failed_round_exits_2_with_its_failing_check_and_a_debug_bundle": CALIBRATIONS,
}
_MYPY = "test_mypy_strict_finds_nothing"
_FIRST = (
    _MYPY, FLOWS, CALIBRATIONS, "tests/training/rollout/test_vllm.py", "tests/training/test_ppo_run.py",
    "tests/training/test_episode_engines.py", "tests/end_to_end/test_local_run.py", "tests/judge/test_judge.py",
    "tests/training/test_judge_drifted.py", "tests/training/ranks/test_training.py", "tests/gates/test_damage.py",
    "tests/calibration/test_judge_baseline.py", "tests/gates/test_damage_table.py", "tests/training/test_warm_start.py",
    "tests/calibration/test_reward_hacking.py", "tests/release/test_report.py",
    "tests/training/test_registry.py", "tests/training/test_train_local.py", "tests/gates/test_leaks.py",
    "tests/cli/test_bad_inputs.py",
)  # fmt: skip
"""The slowest groups, so that the workers end at about the same time. The others follow in order of collection."""


def group_of(nodeid: str) -> str:
    """The group of a test: its file, so that fixtures are made once, or the resource that exists only once."""
    file, _, rest = nodeid.partition("::")
    name = rest.partition("[")[0]
    if file == "tests/flows/test_calibrate.py":
        return CALIBRATIONS
    if file.startswith("tests/flows/"):
        return FLOWS
    if name in _FLOWS_OF_COMMANDS:
        return _FLOWS_OF_COMMANDS[name]
    return _MYPY if name == _MYPY else file


def turn_of(nodeid: str) -> int:
    """The position of a test's group; lower numbers run first."""
    group = group_of(nodeid)
    return _FIRST.index(group) if group in _FIRST else len(_FIRST)


class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
    """Assigns whole groups to workers, in order of collection."""

    def schedule(self) -> None:
        """As in xdist, but in order of collection, since a group's number of tests says little about its duration."""
        self.config.option.loadscopereorder = False
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
