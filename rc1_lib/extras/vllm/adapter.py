"""The adapter as a vLLM server has it: written whole, loaded under a name of its own, the one before it forgotten."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tempfile
from pathlib import Path

import torch

from rc1_lib.errors import ConfigError
from rc1_lib.extras.vllm.server import VLLMServer
from rc1_lib.training.checkpoint.atomic_folder import new_folder
from rc1_lib.training.policy import Policy

PREFIX = "rc1-"
"""What the name of every adapter begins with that a run has a server load."""


class ServedAdapter:
    """One adapter at a time, in a server and in a folder that the server sees.

    Every state has a name that was never used before. Under an old name the server would go on with the keys and values
    that it keeps of prompts, which are those of the old weights.
    """

    def __init__(self, folder: str | None) -> None:
        """Takes the folder that adapters are written to; a temporary one where it is None."""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="rc1-adapters-")
            folder = self._temporary.name
        self._folder = Path(folder)
        self._run, self._count = secrets.token_hex(4), 0
        self._name: str | None = None
        self._digest = ""

    async def offer(self, server: VLLMServer, policy: Policy) -> str:
        """The name that the server has the current policy by, which is loaded if it is another than before.

        Raises:
            ConfigError: when the folder cannot be written.
            VLLMError: when the server does not load it.
        """
        digest = _digest(policy)
        if self._name is not None and digest == self._digest:
            return self._name
        before, self._count = self._name, self._count + 1
        name = f"{PREFIX}{self._run}-{self._count}"
        self._write(policy, self._folder / name)
        try:
            await server.load(name, str(self._folder / name))
        except BaseException:
            shutil.rmtree(self._folder / name, ignore_errors=True)
            raise
        self._name, self._digest = name, digest
        if before is not None:
            await self._forget(server, before)
        return name

    async def forget(self, server: VLLMServer) -> None:
        """Leave neither server nor folder with an adapter.

        Raises:
            VLLMError: when the server is gone.
        """
        name, self._name = self._name, None
        if name is not None:
            await self._forget(server, name)

    def close(self) -> None:
        """Remove what was written."""
        if self._temporary is not None:
            self._temporary.cleanup()
        elif self._name is not None:
            shutil.rmtree(self._folder / self._name, ignore_errors=True)

    async def _forget(self, server: VLLMServer, name: str) -> None:
        # In this order: a server that has it may read the folder once more.
        try:
            await server.unload(name)
        finally:
            shutil.rmtree(self._folder / name, ignore_errors=True)

    def _write(self, policy: Policy, target: Path) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with new_folder(target) as folder:
                policy.peft.save_pretrained(str(folder), save_embedding_layers=False)
                (folder / "README.md").unlink(missing_ok=True)  # peft's form of a model card, nothing filled in
        except OSError as error:
            raise ConfigError(
                f"training.vllm.adapters: {self._folder} cannot be written ({error.strerror}); name a folder that both "
                f"this machine and the server see"
            ) from None


def _digest(policy: Policy) -> str:
    """SHA-256 of the adapter's weights."""
    digest = hashlib.sha256()
    for name, value in sorted(policy.adapter_state().items()):
        digest.update(name.encode())
        digest.update(value.cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
