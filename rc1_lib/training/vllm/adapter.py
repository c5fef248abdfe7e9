"""The adapter in a vLLM server: written atomically, loaded under a new name, and the previous one unloaded."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tempfile
from pathlib import Path

import torch

from rc1_lib.errors import ConfigError
from rc1_lib.training.checkpoint.atomic_folder import new_folder
from rc1_lib.training.policy import Policy
from rc1_lib.training.vllm.server import VLLMServer

PREFIX = "rc1-"
"""Prefix of the names of all adapters that a run loads."""


class ServedAdapter:
    """Keeps one adapter at a time in a server, and in a folder that the server can read.

    Every state gets a name that was never used before. Under an old name the server would reuse its prefix cache, which
    belongs to the old weights.
    """

    def __init__(self, folder: str | None) -> None:
        """Keep the folder for adapters; None uses a temporary one."""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="rc1-adapters-")
            folder = self._temporary.name
        self._folder = Path(folder)
        self._run, self._count = secrets.token_hex(4), 0
        self._name: str | None = None
        self._digest = ""

    async def load_current(self, server: VLLMServer, policy: Policy) -> str:
        """Load the current policy's adapter if it has changed, and return its name in the server.

        Raises:
            ConfigError: if the folder cannot be written.
            VLLMError: if the server does not load it.
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
            await self._unload(server, before)
        return name

    async def unload(self, server: VLLMServer) -> None:
        """Remove the adapter from server and folder.

        Raises:
            VLLMError: if the server is gone.
        """
        name, self._name = self._name, None
        if name is not None:
            await self._unload(server, name)

    def close(self) -> None:
        """Remove the written files."""
        if self._temporary is not None:
            self._temporary.cleanup()
        elif self._name is not None:
            shutil.rmtree(self._folder / self._name, ignore_errors=True)

    async def _unload(self, server: VLLMServer, name: str) -> None:
        # In this order, because a server that still has the adapter may read the folder again.
        try:
            await server.unload(name)
        finally:
            shutil.rmtree(self._folder / name, ignore_errors=True)

    def _write(self, policy: Policy, target: Path) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with new_folder(target) as folder:
                policy.peft.save_pretrained(str(folder), save_embedding_layers=False)
                (folder / "README.md").unlink(missing_ok=True)  # peft's empty model card
        except OSError as error:
            raise ConfigError(
                f"training.vllm.adapters: {self._folder} cannot be written ({error.strerror}); use a folder that both "
                "this machine and the server can read"
            ) from None


def _digest(policy: Policy) -> str:
    """Return the SHA-256 of the adapter's weights."""
    digest = hashlib.sha256()
    for name, value in sorted(policy.adapter_state().items()):
        digest.update(name.encode())
        digest.update(value.cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
