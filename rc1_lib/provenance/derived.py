"""Descriptions of everything that a run reads: what it is given, and what RC1 derives from that.

A description says where a file is, what it is made from, by which function, and whether a ticket pins it. It answers
every question about the file: does it exist, was it altered, is it out of date, does it have to be built, what does its
fingerprint cover. Each room declares its own; `rc1_lib.evidence` lists them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

from rc1_lib.errors import RC1Error
from rc1_lib.provenance.code import Made, code_sha256
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import FileState, file_state, sha256_json
from rc1_lib.workspace.file_hashes import sha256_known

Build = Literal["auto", "always", "never"]
NOT_OURS = {
    FileState.ALTERED: "was altered after RC1 wrote it",
    FileState.FOREIGN: "was not written by RC1 for this purpose",
}
"""State of a file that RC1 did not write, or not in this form -> the state in words; such files are not overwritten."""
_OURS_TO_BUILD = (FileState.MISSING, FileState.INTERRUPTED, FileState.STALE)


def needs_build(state: FileState, build: Build) -> bool:
    """Return whether to build a file in this state.

    `auto` builds what is missing, interrupted or made from other inputs, and leaves a file that RC1 did not write in
    this form for the gates to judge. `always` builds everything, `never` nothing.
    """
    return build == "always" or (build == "auto" and state in _OURS_TO_BUILD)


class Described(Protocol):
    """What the descriptions of given and of derived files have in common."""

    @property
    def name(self) -> str:
        """Its name in reports, gates and the ticket."""

    @property
    def vouched(self) -> bool:
        """Whether a ticket pins it."""

    def path(self, run: Run) -> Path:
        """Return its path, whether or not it exists."""

    def applies(self, run: Run) -> bool:
        """Return whether this run has one."""

    def sha256(self, run: Run) -> str:
        """Return the fingerprint of its bytes; raises `RC1Error` if it does not exist."""


@dataclass(frozen=True, slots=True)
class Given:
    """A file or folder that RC1 reads but did not make.

    Attributes:
        name: its name in reports, gates and the ticket.
        where: its configured path; the workspace's copy comes first, then the project's.
        hashed: computes the fingerprint of its path, which is a file or a folder.
        only_folders: whether it applies only if it is a local folder; otherwise there are no bytes to pin.
        vouched: whether a ticket pins it.
        wanted: whether the configuration uses it.
        made_by: where it comes from, for advice.
    """

    name: str
    where: Callable[[Run], str]
    hashed: Callable[[Path], str] = sha256_known
    only_folders: bool = False
    vouched: bool = True
    wanted: Callable[[Run], bool] = lambda run: True
    made_by: str = "`rc1 preflight` writes what is missing"

    def path(self, run: Run) -> Path:
        """Return its path; the current directory is not searched."""
        return run.workspace.find(self.where(run))

    def applies(self, run: Run) -> bool:
        """Return whether this run has one."""
        return self.wanted(run) and (not self.only_folders or self.path(run).is_dir())

    def sha256(self, run: Run) -> str:
        """Return the fingerprint of the file's bytes, or of a folder's names and bytes.

        Raises:
            RC1Error: when it does not exist.
        """
        return _there(self.path(run), self.name, self.made_by, self.hashed)


@dataclass(frozen=True, slots=True)
class Input:
    """One input that an artifact is made from.

    Attributes:
        name: its key in the manifest.
        sha256: computes its current fingerprint; "" if it is missing.
    """

    name: str
    sha256: Callable[[Run], str]


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that RC1 derives, with a manifest that records its inputs.

    Attributes:
        name: its name in reports, gates, manifests and the ticket.
        where: its configured path below the workspace.
        settings: the settings that affect it; None if its name already identifies its inputs.
        made_from: its other inputs, apart from the code; any change of them makes it out of date.
        builder: the `module.function` that builds it.
        command: the command that writes it, for advice.
        outdated: whether something other than its inputs has made it out of date.
        look: computes its state if it has no manifest.
        vouched: whether a ticket pins it.
        wanted: whether the configuration uses it.
    """

    name: str
    where: Callable[[Run], str]
    settings: Callable[[Run], Mapping[str, Any]] | None
    builder: str
    command: str
    made_from: tuple[Input, ...] = ()
    outdated: Callable[[Run], bool] | None = None
    look: Callable[[Run], FileState] | None = None
    vouched: bool = False
    wanted: Callable[[Run], bool] = lambda run: True
    code: Made = "data"

    def path(self, run: Run) -> Path:
        """Return its path, whether or not it exists."""
        return run.workspace.path(self.where(run))

    def applies(self, run: Run) -> bool:
        """Return whether this run has one."""
        return self.wanted(run)

    def sha256(self, run: Run) -> str:
        """Return the fingerprint of the file's bytes.

        Raises:
            RC1Error: when it does not exist.
        """
        return _there(self.path(run), self.name, f"{self.command} writes it", sha256_known)

    @property
    def build(self) -> Callable[..., Any]:
        """The function that builds it, whose module is imported only now."""
        module, _, function = self.builder.rpartition(".")
        made: Callable[..., Any] = getattr(import_module(module), function)
        return made

    def inputs(self, run: Run) -> dict[str, str]:
        """Return the current fingerprints of all inputs, as in a manifest."""
        settings = {} if self.settings is None else {"config": sha256_json(self.settings(run))}
        return {**settings, **{one.name: one.sha256(run) for one in self.made_from}, "code": code_sha256(self.code)}

    def state(self, run: Run) -> FileState:
        """Return its state, compared with what was written."""
        if self.look is not None:
            return self.look(run)
        try:
            where = self.where(run)
        except RC1Error:  # an input that its name depends on is missing
            return FileState.MISSING
        inputs = None if self.settings is None else self.inputs(run)
        state = file_state(run.workspace, where, inputs, self.name)
        late = state is FileState.FRESH and self.outdated is not None and self.outdated(run)
        return FileState.STALE if late else state

    def check_ours(self, run: Run, rebuild: bool) -> FileState:
        """Reject a file that RC1 did not write in this form, before it is overwritten or used.

        Args:
            rebuild: whether it is written again in any case.

        Returns:
            Its state.

        Raises:
            RC1Error: says what happened to the file, and what to do.
        """
        state = self.state(run)
        if not rebuild and state in NOT_OURS:
            raise RC1Error(
                f"{self.path(run)}: {NOT_OURS[state]}; it is not overwritten. Move it away, or write it again: "
                f"{self.command} --rebuild"
            )
        return state

    def to_write(self, run: Run, rebuild: bool) -> bool:
        """Return whether it has to be written, which is so unless it is fresh.

        Raises:
            RC1Error: when RC1 did not write it in this form, unless `rebuild` is given.
        """
        return self.check_ours(run, rebuild) is not FileState.FRESH or rebuild


def file_input(name: str, where: Callable[[Run], str]) -> Input:
    """Return the input for a file that another step writes, by its name and its path below the workspace."""
    return Input(name, partial(_sha256_at, where))


def fingerprint(one: Described, run: Run) -> dict[str, str]:
    """Return a file's path, as reports show it, and its fingerprint.

    Raises:
        RC1Error: when it does not exist.
    """
    return {"path": run.workspace.name(one.path(run)), "sha256": one.sha256(run)}


def _sha256_at(where: Callable[[Run], str], run: Run) -> str:
    path = run.workspace.path(where(run))
    return sha256_known(path) if path.exists() else ""


def _there(path: Path, name: str, made_by: str, hashed: Callable[[Path], str]) -> str:
    if not path.exists():
        raise RC1Error(f"{path}: file not found, but the gates or the ticket need '{name}'; {made_by}")
    return hashed(path)
