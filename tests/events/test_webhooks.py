"""Webhooks by the Standard Webhooks specification: signatures, schedule, rotation, redelivery, 410."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from fastapi.testclient import TestClient

from app.events import outbox, signing
from app.events.egress import Egress
from app.events.worker import EventWorker
from app.foundation.clock import ManualClock
from app.foundation.database import Database

TENANT = "ten_loopback"


def reply(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> httpx.Response:
    """An answer that is still to be read, as from a network."""
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))


class Receiver:
    """The other side: answers as told and keeps what it got."""

    def __init__(self) -> None:
        self.answer: Callable[[], httpx.Response] = lambda: reply(204)
        self.got: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.got.append(request)
        return self.answer()


async def public(host: str, port: int) -> list[str]:
    return ["93.184.216.34"]


class Post:
    """The service with a worker that runs when told."""

    def __init__(self, client: TestClient, clock: ManualClock) -> None:
        self.client, self.clock, self.receiver = client, clock, Receiver()
        self.database: Database = client.app.state.database
        client.app.state.event_worker.egress = Egress(resolve=public, transport=httpx.MockTransport(self.receiver))

    def hook(self, **body: object) -> dict[str, str]:
        answer = self.client.post("/v1/webhooks", json={"url": "https://hooks.example/x", **body})
        assert answer.status_code == 201, answer.text
        return answer.json()

    def announce(self, subject: str = "quo_1", event_type: str = "quote.issued") -> None:
        self.database.transact_now(
            lambda c: outbox.announce(
                c, tenant_id=TENANT, event_type=event_type, subject=subject, at=self.clock.now(), data={"revision": 1}
            ),
            TENANT,
        )

    def work(self) -> int:
        async def run() -> int:
            egress = Egress(resolve=public, transport=httpx.MockTransport(self.receiver))
            worker = EventWorker(
                self.database, self.clock, signing_key=self.client.app.state.settings.signing_key, egress=egress
            )
            await worker.publish()
            sent = await worker.deliver()
            await worker.stop()
            return sent

        return asyncio.run(run())

    def deliveries(self, hook_id: str) -> list[dict[str, object]]:
        return self.client.get(f"/v1/webhooks/{hook_id}/deliveries").json()["items"]


@pytest.fixture
def post(client: TestClient, clock: ManualClock) -> Post:
    return Post(client, clock)


def check_signature(request: httpx.Request, secret: str) -> bool:
    """Verify as a receiver does, from the text of the specification."""
    content = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.content
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return f"v1,{expected}" in request.headers["webhook-signature"].split(" ")


def test_the_specifications_own_example() -> None:
    # Standard Webhooks, reference implementations' test vector.
    headers = signing.signed_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        datetime.fromtimestamp(1614265330, UTC),
        b'{"test": 2432232314}',
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_an_event_arrives_signed_thin_and_once(post: Post) -> None:
    hook = post.hook()
    post.announce()
    assert post.work() == 1
    assert post.work() == 0
    (request,) = post.receiver.got
    body = json.loads(request.content)
    assert check_signature(request, hook["secret"])
    assert not check_signature(request, signing.new_secret())
    assert request.headers["webhook-id"] == body["id"]
    assert (body["specversion"], body["type"], body["subject"]) == ("1.0", "quote.issued", "quo_1")
    assert body["data"] == {"revision": 1}
    assert post.deliveries(hook["id"])[0]["status"] == "succeeded"


def test_only_the_types_asked_for_are_sent(post: Post) -> None:
    post.hook(event_types=["quote.accepted"])
    post.announce()
    post.announce(event_type="quote.accepted")
    post.work()
    assert [json.loads(request.content)["type"] for request in post.receiver.got] == ["quote.accepted"]


def test_a_failing_receiver_is_tried_ten_times_by_the_schedule(post: Post) -> None:
    hook = post.hook()
    post.receiver.answer = lambda: reply(500, b"oops")
    post.announce()
    started_at = post.clock.now()
    sent_at = []
    for pause in (0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400):
        post.clock.advance(timedelta(seconds=pause) - timedelta(seconds=1 if pause else 0))
        if pause:
            assert post.work() == 0
            post.clock.advance(timedelta(seconds=1))
        assert post.work() == 1
        sent_at.append((post.clock.now() - started_at).total_seconds())
    post.clock.advance(timedelta(days=30))
    assert post.work() == 0
    (delivery,) = post.deliveries(hook["id"])
    assert (delivery["status"], delivery["attempts"], delivery["response_status"]) == ("failed", 10, 500)
    assert delivery["response_excerpt"] == "oops"
    assert len({request.headers["webhook-id"] for request in post.receiver.got}) == 1


def test_a_throttling_receiver_is_left_alone_as_long_as_it_asks(post: Post) -> None:
    post.hook()
    post.receiver.answer = lambda: reply(429, headers={"Retry-After": "120"})
    post.announce()
    post.work()
    post.clock.advance(timedelta(seconds=119))
    assert post.work() == 0
    post.clock.advance(timedelta(seconds=1))
    assert post.work() == 1


def test_gone_disables_the_webhook_and_says_so(post: Post) -> None:
    hook = post.hook()
    post.receiver.answer = lambda: reply(410)
    post.announce()
    post.announce("quo_2")
    post.work()
    shown = post.client.get(f"/v1/webhooks/{hook['id']}").json()
    assert (shown["status"], shown["disabled_reason"]) == ("disabled", "the receiver answered 410 Gone")
    post.work()
    feed = post.client.get("/v1/events").json()["items"]
    assert [event["type"] for event in feed][-1] == "webhook.disabled"
    post.announce("quo_3")
    assert post.work() == 0


def test_during_a_rotation_both_secrets_verify(post: Post) -> None:
    hook = post.hook()
    rotated = post.client.post(f"/v1/webhooks/{hook['id']}/rotate-secret", json={"grace_seconds": 60}).json()
    post.announce()
    post.work()
    assert check_signature(post.receiver.got[-1], hook["secret"])
    assert check_signature(post.receiver.got[-1], rotated["secret"])
    post.clock.advance(timedelta(seconds=60))
    post.announce()
    post.work()
    assert not check_signature(post.receiver.got[-1], hook["secret"])
    assert check_signature(post.receiver.got[-1], rotated["secret"])


def test_redelivery_and_test_events(post: Post) -> None:
    hook = post.hook()
    other = post.hook()
    post.announce()
    post.work()
    first = post.deliveries(hook["id"])[0]
    again = post.client.post(f"/v1/webhooks/{hook['id']}/deliveries/{first['id']}/redeliver")
    assert again.status_code == 202
    assert post.work() == 1
    assert post.receiver.got[-1].headers["webhook-id"] == first["event_id"]
    assert post.client.post(f"/v1/webhooks/{hook['id']}/test").status_code == 202
    before = len(post.deliveries(other["id"]))
    assert post.work() == 1
    assert json.loads(post.receiver.got[-1].content)["type"] == "webhook.test"
    assert len(post.deliveries(other["id"])) == before


def test_the_life_of_a_webhook_over_http(post: Post) -> None:
    client = post.client
    hook = post.hook(description="mine")
    url = f"/v1/webhooks/{hook['id']}"
    etag = client.get(url).headers["etag"]
    assert client.patch(url, json={"status": "disabled"}).status_code == 428
    assert client.patch(url, json={"status": "disabled"}, headers={"If-Match": '"v9"'}).status_code == 412
    changed = client.patch(url, json={"status": "disabled"}, headers={"If-Match": etag})
    assert (changed.status_code, changed.json()["status"]) == (200, "disabled")
    assert client.post(f"{url}/test").json()["slug"] == "conflict"
    assert client.delete(url).status_code == 204
    assert client.get(url).json()["slug"] == "gone"
    assert client.get("/v1/webhooks").json()["items"] == []
    assert client.get("/v1/webhooks/whk_" + "0" * 32).status_code == 404
    wrong = client.post("/v1/webhooks", json={"url": "https://hooks.example", "event_types": ["quote.eaten"]})
    assert (wrong.status_code, wrong.json()["pointer"]) == (422, "/event_types")
    forbidden = client.post("/v1/webhooks", json={"url": "http://hooks.example"})
    assert (forbidden.status_code, forbidden.json()["reason"]) == (422, "scheme")


def test_secrets_are_sealed_in_the_database(post: Post) -> None:
    from sqlalchemy import text

    secret = post.hook()["secret"]
    rows = post.database.read_now(lambda c: c.execute(text("SELECT * FROM webhooks")).all(), TENANT)
    assert len(rows) == 1
    assert secret not in str(rows)


def test_the_feed_can_be_asked_again_and_again(post: Post) -> None:
    post.announce("quo_1")
    post.announce("quo_2")
    post.work()
    first = post.client.get("/v1/events?limit=1").json()
    second = post.client.get(f"/v1/events?limit=1&cursor={first['next_cursor']}").json()
    nothing = post.client.get(f"/v1/events?cursor={second['next_cursor']}").json()
    assert [e["subject"] for e in first["items"] + second["items"] + nothing["items"]] == ["quo_1", "quo_2"]
    post.announce("quo_3")
    post.work()
    later = post.client.get(f"/v1/events?cursor={nothing['next_cursor']}").json()
    assert [(e["sequence"], e["subject"]) for e in later["items"]] == [(3, "quo_3")]
