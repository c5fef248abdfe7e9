"""Reporting a run that did not pass: an automation of the server that calls a webhook.

The address may be a secret by itself, as that of a chat's webhook is. It is in a block, which Prefect keeps
encrypted and shows as stars; no log, no report and no process of a run is given it.
"""

from __future__ import annotations

from urllib.parse import urlsplit
from uuid import UUID

from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import get_client
from prefect.events.actions import CallWebhook
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification
from prefect.exceptions import ObjectNotFound
from pydantic import SecretStr

from deployments.server import WEBHOOK
from rc1_lib.errors import ConfigError
from tasks.endings import FAULT, NOT_PASSED

BLOCK = "rc1-webhook"
"""The block's name: one that was made in the UI, with headers of its own for example, is called as well."""
NAME = "rc1: tell of a run that is not green"

_NOTIFIED = (*NOT_PASSED, FAULT, "Failed", "Crashed")
_PAYLOAD = """{
  "text": {{ [deployment.name or flow_run.name, flow_run.state.name, flow_run.state.message] | join(": ") | tojson }},
  "run": {{ flow_run.name | tojson }},
  "deployment": {{ (deployment.name or "") | tojson }},
  "state": {{ flow_run.state.name | tojson }},
  "message": {{ (flow_run.state.message or "") | tojson }}
}"""
"""`text` is what chats show; the rest is for programs."""


def notify_on_failure(address: str = "") -> bool:
    """Have the server call the webhook whenever a run of RC1 does not pass.

    Args:
        address: of the webhook; empty: as the block has it, if there is one.

    Returns:
        Whether there is a webhook to call. Where there is none, an automation that called one is removed.

    Raises:
        ConfigError: when the address is none of http or https; it is not repeated.
    """
    block = _block(address)
    with get_client(sync_client=True) as client:
        for old in client.read_automations_by_name(NAME):
            client.delete_automation(old.id)
        if block is not None:
            client.create_automation(_automation(block))
    return block is not None


def _block(address: str) -> UUID | None:
    if address:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{WEBHOOK}: is not the address of a webhook; expected one that begins with https://")
        webhook = Webhook(url=SecretStr(address), headers={"Content-Type": "application/json"})
        saved: UUID = webhook.save(BLOCK, overwrite=True)  # type: ignore[assignment]
        return saved
    try:
        found: UUID | None = Webhook.load(BLOCK)._block_document_id  # type: ignore[union-attr]
    except (ValueError, ObjectNotFound):  # no such block
        return None
    return found


def _automation(block: UUID) -> AutomationCore:
    return AutomationCore(
        name=NAME,
        trigger=EventTrigger(
            match=ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
            match_related=ResourceSpecification({"prefect.resource.role": "flow", "prefect.resource.name": "rc1"}),
            expect={f"prefect.flow-run.{name}" for name in _NOTIFIED},
            posture=Posture.Reactive,
            threshold=1,
        ),
        actions=[CallWebhook(block_document_id=block, payload=_PAYLOAD)],
    )
