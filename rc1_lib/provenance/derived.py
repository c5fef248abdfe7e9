"""What a run reads, each described once: what it is given, and what RC1 derives from that.

A description says where the thing lies, what it is made from, by which function, and whether a ticket vouches for it.
Every question about it is asked of the description: is it there, is it what was written, is it out of date, has it to
be built, which code does its fingerprint cover. A room declares its own; `rc1_lib.evidence` lists them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

from rc1_lib.errors import RC1Error
from rc1_lib.provenance.code import code_sha256
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import FileState, file_state, sha256_json
from rc1_lib.workspace.file_hashes import sha256_known

Build = Literal["auto", "always", "never"]
NOT_OURS = {
    FileState.ALTERED: "was altered after RC1 wrote it",
    FileState.FOREIGN: "was not written by RC1 for this purpose",
}
"""The states of a file that somebody else had a hand in, in words: it is never written over unasked."""
_OURS_TO_BUILD = (FileState.MISSING, FileState.INTERRUPTED, FileState.STALE)


def needs_build(state: FileState, build: Build) -> bool:
    """Whether to build a file in this state.

    `auto` builds what is missing, interrupted or made from other inputs; a file that was altered by somebody else (or
    brought along) is left for the gates to judge. `always` builds everything; `never` judges what is there.
    """
    return build == "always" or (build == "auto" and state in _OURS_TO_BUILD)


class Described(Protocol):
    """What is given and what is derived have this in common."""

    @property
    def name(self) -> str:
        """As reports, gates and the ticket call it."""

    @property
    def vouched(self) -> bool:
        """Whether a ticket binds it."""

    def path(self, run: Run) -> Path:
        """Where it lies, or would lie."""

    def applies(self, run: Run) -> bool:
        """Whether this run has one at all."""

    def sha256(self, run: Run) -> str:
        """Fingerprint of its bytes; `RC1Error` where it is not there."""


@dataclass(frozen=True, slots=True)
class Given:
    """Something that is read and was not made by RC1.

    Attributes:
        name: as reports, gates and the ticket call it.
        where: its path, by the configuration: the workspace's own copy when there is one, else the project's.
        hashed: how its bytes become a fingerprint: a file's, or a folder's.
        only_folders: whether it counts only where it is a folder here; elsewhere it has no bytes to vouch for.
        vouched: whether a ticket binds it.
        wanted: whether the configuration asks for it at all.
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
        """Where it lies: never looked for in the current directory."""
        return run.workspace.find(self.where(run))

    def applies(self, run: Run) -> bool:
        """Whether this run has one at all."""
        return self.wanted(run) and (not self.only_folders or self.path(run).is_dir())

    def sha256(self, run: Run) -> str:
        """Fingerprint of the file's bytes, or of a folder's names and bytes.

        Raises:
            RC1Error: when it is not there.
        """
        return _there(self.path(run), self.name, self.made_by, self.hashed)


@dataclass(frozen=True, slots=True)
class Input:
    """One of the things that something is made from.

    Attributes:
        name: its key in the manifest.
        sha256: its fingerprint as of now; "" where it is missing.
    """

    name: str
    sha256: Callable[[Run], str]


@dataclass(frozen=True, slots=True)
class Artifact:
    """Something that RC1 derives, with a manifest that says from what.

    Attributes:
        name: as reports, gates, manifests and the ticket call it.
        where: its path below the workspace, by the configuration.
        settings: what of the configuration decides it; None where its name holds all that it was made from.
        made_from: what else decides it, but for the code: any change of that puts it out of date.
        builder: `module.function` that makes it.
        command: writes it, for advice.
        outdated: whether something other than what it is made from has put it out of date.
        look: what became of it, where no manifest says so.
        vouched: whether a ticket binds it.
        wanted: whether the configuration asks for it at all.
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

    def path(self, run: Run) -> Path:
        """Where it lies, or will be written."""
        return run.workspace.path(self.where(run))

    def applies(self, run: Run) -> bool:
        """Whether this run has one at all."""
        return self.wanted(run)

    def sha256(self, run: Run) -> str:
        """Fingerprint of the file's bytes.

        Raises:
            RC1Error: when it is not there.
        """
        return _there(self.path(run), self.name, f"{self.command} writes it", sha256_known)

    @property
    def build(self) -> Callable[..., Any]:
        """The function that makes it. Nothing is imported before it is asked for."""
        module, _, function = self.builder.rpartition(".")
        made: Callable[..., Any] = getattr(import_module(module), function)
        return made

    def inputs(self, run: Run) -> dict[str, str]:
        """Fingerprints of all that it is made from, as its manifest holds them."""
        settings = {} if self.settings is None else {"config": sha256_json(self.settings(run))}
        return {**settings, **{one.name: one.sha256(run) for one in self.made_from}, "code": code_sha256()}

    def state(self, run: Run) -> FileState:
        """What became of it since it was written."""
        if self.look is not None:
            return self.look(run)
        try:
            where = self.where(run)
        except RC1Error:  # what its name is made of is not there
            return FileState.MISSING
        inputs = None if self.settings is None else self.inputs(run)
        state = file_state(run.workspace, where, inputs, self.name)
        late = state is FileState.FRESH and self.outdated is not None and self.outdated(run)
        return FileState.STALE if late else state

    def check_ours(self, run: Run, rebuild: bool) -> FileState:
        """Refuse to go over, or to go on from, what somebody else has had a hand in.

        Args:
            run: whose.
            rebuild: whether it is written again, whoever wrote it.

        Returns:
            What became of it since it was written.

        Raises:
            RC1Error: naming it, what befell it, and what to do.
        """
        state = self.state(run)
        if not rebuild and state in NOT_OURS:
            raise RC1Error(
                f"{self.path(run)}: {NOT_OURS[state]}; it is not overwritten. Move it away, or write it again: "
                f"{self.command} --rebuild"
            )
        return state

    def to_write(self, run: Run, rebuild: bool) -> bool:
        """Whether it has to be written: not when it is fresh.

        Raises:
            RC1Error: when somebody else altered it or brought it along, and `rebuild` was not given.
        """
        return self.check_ours(run, rebuild) is not FileState.FRESH or rebuild


def file_input(name: str, where: Callable[[Run], str]) -> Input:
    """A file that another step writes, by its name in the registry and its place below the workspace."""
    return Input(name, partial(_sha256_at, where))


def fingerprint(one: Described, run: Run) -> dict[str, str]:
    """Where something lies, as reports show it, and its fingerprint.

    Raises:
        RC1Error: when it is not there.
    """
    return {"path": run.workspace.name(one.path(run)), "sha256": one.sha256(run)}


def _sha256_at(where: Callable[[Run], str], run: Run) -> str:
    path = run.workspace.path(where(run))
    return sha256_known(path) if path.exists() else ""


def _there(path: Path, name: str, made_by: str, hashed: Callable[[Path], str]) -> str:
    if not path.exists():
        raise RC1Error(f"{path}: file not found, but the gates or the ticket need '{name}'; {made_by}")
    return hashed(path)
