"""Notices in a browser while a question waits: a push service of the tests reads what a browser would."""

from collections.abc import Generator

import pytest
from support.driver import Place
from support.model_server import Text, shell
from support.push_service import PushService, is_signed
from support.served import Served
from support.until import until


@pytest.fixture
def service() -> Generator[PushService]:
    """A push service, ended afterwards."""
    with PushService() as made:
        yield made


WISH = shell("rm -r build")


@pytest.mark.checks_data
def test_a_browser_is_told_of_a_question_that_waits(
    place: Place, serve, service: PushService
) -> None:
    """Encrypted for it and signed; a stranger's service is refused, one that is gone is left."""
    serve(WISH, WISH, Text("Done."), rest=f'[serve]\npush_services = ["{service.name}"]')
    web = Served(place)
    web.pair("phone")
    try:
        key = web.ask("GET", "push").data["key"]
        other = {**service.subscription(), "endpoint": "https://example.org/send"}
        refused = web.ask("PUT", "push", other)
        assert (refused.status, "example.org" in refused.data["detail"]) == (409, True)
        assert web.ask("PUT", "push", service.subscription()).data == {"ok": True}
        session = web.begin()
        web.ask("POST", f"sessions/{session}/messages", {"text": "clean up"})
        question = web.until(session, "question")[-1]
        until(lambda: bool(service.told))
        headers, told = service.told[0]
        assert told == {
            "title": "clean up",
            "text": "May it run shell? rm -r build",
            "address": f"#/s/{session}",
        }
        assert headers["Authorization"].endswith(f"k={key}")
        assert is_signed(headers["Authorization"])
        assert b"build" not in (place.home / "state" / "push.json").read_bytes()
        assert (place.home / "state" / "push.json").stat().st_mode & 0o077 == 0
        service.status = 410
        web.ask("POST", f"sessions/{session}/questions/{question['id']}", {"choice": "deny"})
        web.until(session, "question")
        until(lambda: len(service.told) == 2)
        until(lambda: service.name not in (place.home / "state" / "push.json").read_text())
        gone = {"endpoint": service.subscription()["endpoint"]}
        assert web.ask("DELETE", "push", gone).data == {"ok": True}
    finally:
        assert "Traceback" not in web.close()


@pytest.mark.nightly
def test_who_answers_at_once_is_not_called(place: Place, serve, service: PushService) -> None:
    """And a device that was shut out is told no more."""
    serve(WISH, Text("Done."), WISH, rest=f'[serve]\npush_services = ["{service.name}"]')
    web = Served(place)
    web.pair("phone")
    try:
        web.ask("PUT", "push", service.subscription())
        session = web.begin()
        web.ask("POST", f"sessions/{session}/messages", {"text": "clean up"})
        question = web.until(session, "question")[-1]
        web.ask("POST", f"sessions/{session}/questions/{question['id']}", {"choice": "deny"})
        web.until(session, "turn_ended")
        web.ask("POST", f"sessions/{session}/messages", {"text": "again"})
        web.until(session, "question")
        place.run("devices", "revoke", "phone")
        until(lambda: service.name not in (place.home / "state" / "push.json").read_text())
        assert service.told == []
    finally:
        web.close()
