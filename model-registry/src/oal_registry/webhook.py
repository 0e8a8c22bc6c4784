"""MLflow's webhook: registering it, and telling a genuine delivery from a forged one.

A webhook only wakes the loop that polls anyway, so nothing is taken from its body.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Mapping

from oal_registry.mlflow_client import MlflowRegistry

NAME = "oal-registry"
EVENTS = (
    "model_version.created",
    "model_version_tag.set",
    "model_version_tag.deleted",
    "model_version_alias.created",
    "model_version_alias.deleted",
)
PATH = "/webhook"
MAX_AGE_S = 300
MAX_BODY = 64 << 10
REMEMBERED = 10_000


class Verifier:
    """Checks deliveries: HMAC-SHA256 over `id.timestamp.body`, not older than five minutes, each id once.

    One thread at a time.
    """

    def __init__(self, secret: str, clock=time.time):
        self._secret, self._clock = secret.encode(), clock
        self._seen: OrderedDict[str, None] = OrderedDict()

    def verdict(self, headers: Mapping[str, str], body: bytes) -> str:
        """`accepted`, or why not: unsigned, stale, forged, replayed."""
        identity, stamp, signature = (
            headers.get(f"X-MLflow-{name}") or "" for name in ("Delivery-Id", "Timestamp", "Signature")
        )
        if not identity or not stamp or not signature:
            return "unsigned"
        if not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12 or abs(self._clock() - int(stamp)) > MAX_AGE_S:
            return "stale"
        expected = hmac.new(self._secret, f"{identity}.{stamp}.".encode() + body, hashlib.sha256).digest()
        version, _, encoded = signature.partition(",")
        try:
            given = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            given = b""
        if version != "v1" or not hmac.compare_digest(given, expected):
            return "forged"
        if identity in self._seen:
            return "replayed"
        self._seen[identity] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return "accepted"


class Registration:
    """Keeps one webhook of ours in MLflow, with our address, events and secret.

    Kafka fences a second registry, so one of another address is of an earlier configuration, and goes.
    """

    def __init__(self, registry: MlflowRegistry, url: str, secret: str):
        self._registry, self._url, self._secret = registry, url, secret
        self._known: str | None = None  # id of the webhook that holds this secret: MLflow does not show secrets

    def ensure(self) -> bool:
        """Register unless it is there as it should be; True if it had to be done.

        NotPermitted when the user is no admin of MLflow.
        """
        from mlflow.entities.webhook import WebhookEvent, WebhookStatus

        events = [WebhookEvent.from_str(event) for event in EVENTS]
        client = self._registry.client
        right = False
        for hook in self._registry.call("list webhooks", lambda: list(_pages(client.list_webhooks))):
            if hook.name != NAME:
                continue
            if (
                not right
                and hook.webhook_id == self._known
                and hook.url == self._url
                and hook.status == WebhookStatus.ACTIVE
                and {str(e) for e in hook.events} == {str(e) for e in events}
            ):
                right = True
            else:
                self._registry.call("delete a webhook", client.delete_webhook, hook.webhook_id)
        if right:
            return False
        made = self._registry.call(
            "register a webhook",
            client.create_webhook,
            NAME,
            self._url,
            events,
            description="Wakes the model registry. Made by it; deleting it costs seconds of delay, no more.",
            secret=self._secret,
        )
        self._known = made.webhook_id
        return True


def _pages(list_page):
    token = None
    while True:
        page = list_page(page_token=token)
        yield from page
        if not (token := page.token):
            return
