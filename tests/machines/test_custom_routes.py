"""Routes of one's own: what they become, and what they cannot mean."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.machines.delivery import ENDS, Cause, deliver
from steersman.machines.disposition import dispose
from steersman.machines.routes import STEERSMAN, Routes
from steersman.proofs.custom_routes import (
    OUTCOMES,
    TARGETS,
    InvalidRoute,
    Override,
    RouteOutcome,
    put_in_front,
)
from steersman.proofs.route_check import CONVERSATIONAL, check_routes


def talk(name: str, what: str, *to: str, **more: Any) -> Override:
    """Make a route by which talk gives something to these; `more` are other keys of it."""
    gift = RouteOutcome(to=to, what=what)
    return Override(**{"name": name, "message": ("converse",), "deliver": (gift,), **more})


def upon(name: str, cause: str, what: str, *to: str, **more: Any) -> Override:
    """Make a route by which a cause gives something to these."""
    gift = RouteOutcome(to=to, what=what)
    return Override(name=name, causes=(cause,), deliver=(gift,), **more)


def in_front(*overrides: Override) -> Routes:
    """Put routes before the shipped ones; they must make sense."""
    routes, invalid_routes = put_in_front(STEERSMAN, overrides)
    assert invalid_routes == ()
    return routes


def invalid_routes_of(*overrides: Override) -> list[tuple[int, str, str]]:
    """List what cannot be translated."""
    _, invalid_routes = put_in_front(STEERSMAN, overrides)
    return [(route.route, route.key, route.message) for route in invalid_routes]


def said(routes: Routes, intent: str, situation: str) -> tuple[str, str, str, str]:
    """Dispose under the default modes."""
    row = dispose(routes.dispositions, intent, situation, "interrupt", "keyword", "off")
    return row.name, row.action, row.cause, row.ack


@pytest.mark.parametrize(
    ("to", "what", "situation", "expected"),
    [
        ("self", "queue", "busy", ("queue", "", "queued")),
        ("self", "steer", "busy", ("steer", "steer", "steered")),
        ("children.active", "steer", "delegating", ("steer", "steer_through", "steered_child")),
        ("self", "cancel", "busy", ("interrupt", "message", "interrupting")),
        ("everybody", "cancel", "busy", ("interrupt", "bare_word", "interrupting")),
        ("self", "turn", "unattended", ("run", "", "")),
        ("children", "steer", "delegating", ("steer", "route.mine", "steered_child")),
    ],
)
def test_a_route_for_talk(
    to: str, what: str, situation: str, expected: tuple[str, str, str]
) -> None:
    """A known cause is named where it has just this reach; otherwise the route brings its own."""
    mine = talk("mine", what, to, when={"situation": (situation,)})
    assert said(in_front(mine), "converse", situation) == ("mine", *expected)


def test_a_route_with_its_own_cause_reaches_only_its_targets() -> None:
    """Who is not named gets nothing, and the result is as safe as before."""
    mine = talk("wide", "steer", "children")
    routes = in_front(mine)
    reach = dict.fromkeys(("foreground_child", "detached_child", "background_child"), "steer")
    assert dict(routes.reach("route.wide")) == reach
    assert deliver(routes.deliveries, "route.wide", "self").name == "wide-else"
    assert check_routes(routes.dispositions, routes.deliveries) == ()


def test_a_route_without_a_place_applies_where_it_is_possible() -> None:
    """A steer for children is no rule for a session that has none, nor for one that rests."""
    routes = in_front(talk("through", "steer", "children.active"))
    assert said(routes, "converse", "delegating")[0] == "through"
    for situation in ("idle", "busy", "accompanied", "interrupting", "finalizing"):
        assert said(routes, "converse", situation) == said(STEERSMAN, "converse", situation)


def test_a_route_for_a_cause() -> None:
    """It changes what some get, and leaves the others alone."""
    targets = ("children.background", "side_talks")
    routes = in_front(upon("all", "timeout", "cancel", *targets, why="No more money."))
    assert set(routes.reach("timeout")) == {
        "self",
        "foreground_child",
        "background_child",
        "side_talk",
    }
    assert deliver(routes.deliveries, "timeout", "side_talk").why == "No more money."
    assert routes.reach("budget") == STEERSMAN.reach("budget")


def test_a_route_for_a_time_limit_is_what_the_child_asks() -> None:
    """The example of docs/routing.md: the child's own stop reaches its children in the background."""
    why = "What a child has started in the background is stopped with it."
    routes = in_front(upon("same-limit", "timeout", "cancel", "children.background", why=why))
    assert check_routes(routes.dispositions, routes.deliveries) == ()
    assert set(routes.reach(Cause.TIMEOUT)) == {"self", "foreground_child", "background_child"}


@pytest.mark.parametrize(
    ("cause", "target", "what", "reason"),
    [
        ("stop", "children", "steer", "`stop` carries no text."),
        ("timeout", "self", "steer", "`timeout` carries no text."),
        ("steer", "goal", "steer", "A goal receives no text; its turns do."),
        ("steer_through", "self", "cancel", "What no child takes in is the cause `steer`."),
        ("turn_ended", "self", "cancel", "The turn has already ended."),
        ("budget", "goal", "finalize", "The goal is paused; only the end of the session drops it."),
    ],
)
def test_a_route_that_nothing_carries_out_is_refused(
    cause: str, target: str, what: str, reason: str
) -> None:
    """What a route promises is what runs; `routes check` says why it would not."""
    route = upon("a", cause, what, target, why="So.")
    routes, invalid_routes = put_in_front(STEERSMAN, [route])
    assert invalid_routes == ()
    faults = check_routes(routes.dispositions, routes.deliveries)
    told = [fault.message for fault in faults if fault.kind == "not-carried-out"]
    assert any(message.endswith(f"which nothing carries out: {reason}") for message in told)


def test_a_message_knows_what_another_route_made_of_a_cause() -> None:
    """A cause that a route widened is no longer the one that stops the turn alone."""
    wide = upon("wide", "message", "cancel", "children")
    plain = talk("plain", "cancel", "self")
    assert said(in_front(plain), "converse", "busy")[2] == "message"
    assert said(in_front(wide, plain), "converse", "busy")[2] == "more_word"


def test_the_first_of_several_routes_wins() -> None:
    """Routes are asked in their order."""
    queue = talk("a", "queue", "self", when={"busy": ("interrupt",)})
    steer = talk("b", "steer", "self")
    assert said(in_front(queue, steer), "converse", "busy")[0] == "a"
    assert said(in_front(steer, queue), "converse", "busy")[0] == "b"


@pytest.mark.parametrize(
    ("route", "key", "message"),
    [
        (Override(name="a"), "", "a route is for a `message` or for a `cause`: name one of them"),
        (
            Override(name="a", message=("converse",), causes=("stop",)),
            "",
            "a route is for a `message` or for a `cause`: name one of them",
        ),
        (Override(name="a", message=("converse",)), "", "`deliver` is missing"),
        (
            talk("steer", "steer", "children.active"),
            "name",
            "`steer` is the name of a shipped row already",
        ),
        (talk("a", "queue", "children"), "deliver", "`queue` goes only to `self`"),
        (
            talk("a", "steer", "self", "children"),
            "deliver",
            "a steer is for the turn or for others, and not for both",
        ),
        (
            Override(
                name="a",
                message=("converse",),
                deliver=(
                    RouteOutcome(to=("self",), what="cancel"),
                    RouteOutcome(to=("children",), what="steer"),
                ),
            ),
            "deliver",
            "a message interrupts or steers, and does not do both",
        ),
        (talk("a", "none", "self"), "deliver", "there is no recipient: the message would be lost"),
        (talk("a", "refuse", "self"), "deliver", "a refusal needs an `ack` with the reason"),
        (
            talk("a", "finalize", "self"),
            "deliver",
            "a message can stop the session; `/finalize` ends it permanently",
        ),
        (
            talk("a", "queue", "self", message=("command",)),
            "message",
            "a slash command is carried out before any route is asked",
        ),
        (
            talk("a", "turn", "self", when={"situation": ("busy",)}),
            "when",
            "while the session is busy a message cannot be run",
        ),
        (
            talk("a", "steer", "self", when={"situation": ("idle",)}),
            "when",
            "while the session is idle a message cannot be a steer: "
            "no turn runs that could take it in",
        ),
        (upon("a", "stop", "queue", "self"), "deliver", "a cause has no text for a `queue`"),
        (upon("a", "timeout", "none", "children"), "deliver", "`none` needs the reason in `why`"),
        (
            upon("a", "stop", "cancel", "self", ack="queued"),
            "ack",
            "`ack` belongs to a route for a message, not to one for a cause",
        ),
    ],
)
def test_what_a_route_cannot_mean(route: Override, key: str, message: str) -> None:
    """Each impossible route is reported with the key that causes it."""
    assert (0, key, message) in invalid_routes_of(route)


def test_a_route_may_not_have_the_name_of_anothers_row() -> None:
    """A route with several gifts becomes several rows, each with a name."""
    both = (
        RouteOutcome(to=("self",), what="cancel"),
        RouteOutcome(to=("children",), what="cancel"),
    )
    first = Override(name="a", causes=("timeout",), deliver=both)
    second = Override(name="a-2", causes=("budget",), deliver=both)
    assert invalid_routes_of(first, second) == [
        (1, "name", "`a-2` is the name of another route already")
    ]


def test_all_invalid_routes_are_reported_at_once_and_nothing_changes() -> None:
    """Two wrong routes are two invalid routes, and the tables stay as they are."""
    good = talk("c", "steer", "children.active")
    routes, invalid_routes = put_in_front(STEERSMAN, [Override(name="a"), good, Override(name="b")])
    assert [route.route for route in invalid_routes] == [0, 2]
    assert routes is STEERSMAN


def test_a_route_behind_one_that_takes_all_is_dead() -> None:
    """It would never be asked; that is a mistake."""
    first = talk("a", "queue", "self")
    second = talk("b", "steer", "children.active")
    _, invalid_routes = put_in_front(STEERSMAN, [first, second])
    message = "never decides anything: earlier routes match wherever it does"
    assert invalid_routes == (InvalidRoute(route=1, key="", message=message),)


@pytest.mark.parametrize(
    ("route", "kind"),
    [
        (talk("a", "cancel", "children"), "kills-child"),
        (talk("a", "cancel", "everybody", message=("interrupt_more",)), "kills-child"),
        (upon("a", "turn_ended", "cancel", "children"), "kills-child"),
        (talk("a", "queue", "self", ack="queued", message=("interrupt_bare",)), "unheard"),
        (upon("a", "stop", "none", "children", why="Busy."), "unheard"),
        (
            talk("a", "refuse", "self", ack="queued", message=("explicit_interrupt",)),
            "dropped-control",
        ),
        (talk("a", "steer", "children.active", when={"situation": ("busy",)}), "lost"),
    ],
)
def test_an_unsafe_route_is_found_by_the_checker(route: Override, kind: str) -> None:
    """It can be translated, looked at and compared; the check of the result names the rule."""
    routes, invalid_routes = put_in_front(STEERSMAN, [route])
    assert invalid_routes == ()
    assert kind in {route.kind for route in check_routes(routes.dispositions, routes.deliveries)}


@st.composite
def routes_of_any_kind(draw: st.DrawFn) -> Override:
    """Make up a route of known words, sensible or not."""
    table = STEERSMAN.dispositions.space
    when = {
        name: tuple(draw(st.sets(st.sampled_from(table[name]), min_size=1, max_size=3)))
        for name in draw(st.sets(st.sampled_from(["situation", "busy", "strategy"]), max_size=1))
    }
    what = draw(st.sampled_from(list(OUTCOMES)))
    target = "self" if what in ("turn", "queue", "refuse") else draw(st.sampled_from(list(TARGETS)))
    gifts = [RouteOutcome(to=(target,), what=what)]
    if target != "self" and draw(st.booleans()):
        gifts.append(
            RouteOutcome(to=("self",), what=draw(st.sampled_from(["steer", "cancel", "none"])))
        )
    name = draw(st.sampled_from("abcdef"))
    if draw(st.integers(0, 3)):
        said = tuple(draw(st.sets(st.sampled_from(table["intent"][:8]), min_size=1, max_size=2)))
        return Override(name=name, message=said, when=when, deliver=tuple(gifts), ack="queued")
    causes = tuple(draw(st.sets(st.sampled_from(list(Cause)), min_size=1, max_size=2)))
    return Override(name=name, causes=causes, deliver=tuple(gifts), why="So.")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(routes_of_any_kind(), min_size=1, max_size=2))
def test_whatever_is_accepted_is_safe(overrides: list[Override]) -> None:
    """No route makes the translation or the check fail, and what both accept ends no child by talk.

    A route may pause the session's own goal by talk: nothing of it is lost, and `/goal resume` goes on.

    The look at the result is independent of the checker: every message, straight through both tables.
    """
    routes, invalid_routes = put_in_front(STEERSMAN, overrides)
    if invalid_routes or check_routes(routes.dispositions, routes.deliveries):
        return
    for key in routes.dispositions.keys():
        row = routes.dispositions.decide(key)
        reach = routes.reach(row.cause) if row.cause else {}
        ended = {one for one, what in reach.items() if what in ENDS}
        if key[0] in CONVERSATIONAL:
            assert ended <= {"self", "goal"}, (key, row)
        if key[0] == "explicit_interrupt" and key[1] in ("busy", "delegating"):
            assert {"self", "foreground_child", "background_child", "side_talk"} <= ended
        if row.action == "steer":
            assert "steer" in reach.values()
