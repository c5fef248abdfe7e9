"""Report runs that do not pass: an automation of the server calls a webhook.

The webhook's address may itself be a secret, as for many chats. It is kept in a block, which Prefect encrypts and shows
as asterisks; no log, report or process of a run receives it.
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
"""The block's name; a block of this name that was made in the UI, for example with custom headers, works too."""
NAME = "rc1: tell of a run that is not green"

_NOTIFIED = (*NOT_PASSED, FAULT, "Failed", "Crashed")
_PAYLOAD = """{
  "text": {{ [deployment.name or flow_run.name, flow_run.state.name, flow_run.state.message] | join(": ") | tojson }},
  "run": {{ flow_run.name | tojson }},
  "deployment": {{ (deployment.name or "") | tojson }},
  "state": {{ flow_run.state.name | tojson }},
  "message": {{ (flow_run.state.message or "") | tojson }}
}"""
"""Chats show `text`; the rest is for programs."""


def notify_on_failure(address: str = "") -> bool:
    """Have the server call the webhook whenever a run of RC1 does not pass.

    Args:
        address: the webhook's address; empty: the one in the block, if there is one.

    Returns:
        Whether there is a webhook to call. If not, an earlier automation is removed.

    Raises:
        ConfigError: when it is not an http or https address; the error does not repeat it.
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
            raise ConfigError(f"{WEBHOOK}: is not the address of a webhook; expected one such as https://HOST/PATH")
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
