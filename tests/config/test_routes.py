"""Routes in configuration files: layers, trust, mistakes, and what is refused as unsafe."""

from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.machines.disposition import dispose
from steersman.machines.errors import ConfigError
from steersman.machines.policy import RoutesChoice
from steersman.machines.routes import STEERSMAN
from steersman.workflows.config import Config, load
from steersman.workflows.paths import Paths
from steersman.workflows.positions import choose_for_folder, folder_file
from steersman.workflows.routing import routes_for
from steersman.workflows.trust import trust

Load = Callable[..., Config]

THROUGH = """
[[route]]
name = "through"
message = "converse"
when = { session = "delegating" }
deliver = [{ to = "children.active", as = "steer" }]
ack = "steered_child"
"""
QUEUED = """
[[route]]
name = "queued-here"
message = ["converse", "steer_word"]
when = { session = ["busy", "delegating"], busy = "interrupt" }
deliver = [{ to = "self", as = "queue" }]
"""
RUDE = """
[[route]]
name = "rude"
message = "converse"
when = { session = "delegating" }
deliver = [{ to = "everybody", as = "cancel" }]
"""


def rule(config: Config, intent: str = "converse", situation: str = "delegating") -> str:
    """Name the row that decides about a message, by default."""
    routes, _ = routes_for(config, None)
    return dispose(routes.dispositions, intent, situation, "interrupt", "keyword", "off").name


def test_a_route_goes_before_the_table(load_with: Load) -> None:
    """What the user's file says of talk during delegation is in force, and the rest is as it was."""
    config = load_with(user=THROUGH)
    assert rule(config) == "through"
    assert rule(config, situation="busy") == "busy-interrupt"


def test_without_routes_nothing_is_built(load_with: Load) -> None:
    """The shipped tables themselves are used."""
    assert routes_for(load_with(), None) == (STEERSMAN, "")
    assert routes_for(load_with(), None)[0] is STEERSMAN


def test_a_later_layer_is_asked_first(load_with: Load, paths: Paths, project: Path) -> None:
    """A project's routes go before the user's, once the project is trusted; both stay in force."""
    load_with(user=THROUGH, project_file=QUEUED)
    trust(paths, project)
    config = load_with(user=THROUGH, project_file=QUEUED)
    assert [row["name"] for row in config.route] == ["queued-here", "through"]
    assert rule(config) == "queued-here"


@pytest.mark.parametrize("cause", ['"turn_ended"', '"turn_end"', '["turn_end", "timeout"]'])
def test_an_earlier_spelling_of_a_cause_is_the_same_word(load_with: Load, cause: str) -> None:
    """A route that was written with it has the row that it always had."""
    deliver = '[{ to = "children", as = "none" }]'
    route = f'[[route]]\nname = "quiet"\ncause = {cause}\ndeliver = {deliver}\nwhy = "So."\n'
    row = routes_for(load_with(user=route), None)[0].deliveries.rows[0]
    assert (row.name, row.when["cause"][0]) == ("quiet", "turn_ended")


def test_an_untrusted_project_changes_no_route(load_with: Load, project: Path) -> None:
    """Neither routes nor the table apply, and a notice says so."""
    text = f'[routing]\ntable = "never-cancel"\nunsafe = true\n{QUEUED}'
    config = load_with(user=THROUGH, project_file=text)
    assert rule(config) == "through"
    assert config.notices == (
        f"{project}/steersman.toml is not trusted: `routing.table`, `route` not applied, "
        "`steersman trust` applies it; cannot set `routing.unsafe`: only your own files do",
    )


def test_every_mistake_is_reported_at_once_with_its_position(error_of: Callable[..., str]) -> None:
    """Unknown words get the nearest known one, in lists and single, in every route of every file."""
    text = error_of(
        user='[[route]]\nname = "a"\nmessage = "convers"\nack = "quued"\n'
        'deliver = [{ to = ["self", "childs"], as = "stear" }]\n'
        'when = { session = "delegate", busi = "steer" }\n',
        project_file='[[route]]\nname = "b c"\ncause = ["stop", "timout"]\n',
    )
    places = [line for line in text.splitlines() if ".toml:" in line]
    assert [line.partition(": ")[0] for line in places] == [
        "home/config.toml:3:11",
        "home/config.toml:4:7",
        "home/config.toml:5:28",
        "home/config.toml:5:44",
        "home/config.toml:6:20",
        "home/config.toml:6:32",
        "project/steersman.toml:2:8",
        "project/steersman.toml:3:18",
    ]
    for near in ("converse", "queued", "children", "steer", "delegating", "timeout"):
        assert f"did you mean `{near}`?" in text
    assert "did you mean `route[0].when.busy`?" in text


def test_what_a_route_cannot_mean_has_its_place(error_of: Callable[..., str]) -> None:
    """Two routes of one file and one of another are all told, each at its own key."""
    text = error_of(
        user='[[route]]\nname = "a"\nmessage = "converse"\n'
        '[[route]]\nname = "b"\nmessage = "converse"\n'
        'deliver = [{ to = "children", as = "queue" }]\n',
        named='[[route]]\nname = "c"\n',
    )
    assert "named.toml:1:1: a route is for a `message` or for a `cause`: name one of them" in text
    assert "home/config.toml:1:1: `deliver` is missing" in text
    assert "home/config.toml:7:11: `queue` goes only to `self`" in text


def test_an_unsafe_route_is_refused_with_its_counterexample(error_of: Callable[..., str]) -> None:
    """The rule, a message that breaks it, and the chain to the child are named, at the route."""
    text = error_of(user=THROUGH.replace("converse", "steer_word"), named=RUDE)
    assert (
        "named.toml:3:8: route `rude`: a converse message never stops a child; but intent converse"
        in text
    )
    assert "cause `bare_word` -> cancel foreground_child (row `cancel-all`)" in text
    assert "`unsafe = true` in `[routing]` accepts that" in text


def test_a_route_hidden_by_another_file_is_no_mistake(load_with: Load) -> None:
    """In one file a route that is never asked is a mistake; a later file may hide it."""
    wide = QUEUED.replace('["busy", "delegating"], busy = "interrupt"', '"delegating"')
    assert rule(load_with(user=THROUGH, named=wide)) == "queued-here"
    with pytest.raises(ConfigError, match="never decides anything"):
        load_with(user=wide + THROUGH)


def test_two_routes_of_one_name(error_of: Callable[..., str]) -> None:
    """A name is used once, over all files: receipts name the row that decided."""
    other = QUEUED.replace("queued-here", "through")
    assert "`through` is the name of another route already" in error_of(user=THROUGH, named=other)
    shipped = QUEUED.replace("queued-here", "busy-queue")
    assert "`busy-queue` is the name of a shipped row already" in error_of(user=shipped)


def test_an_unsafe_table_needs_a_word(error_of: Callable[..., str], load_with: Load) -> None:
    """It is refused, rule by rule with an example; meant, it is used, and every start says so."""
    text = error_of(user='[routing]\ntable = "never-cancel"\n')
    assert "home/config.toml:2:9: table `never-cancel`: a stop reaches every descendant" in text
    assert "`stop` gives foreground_child none: it continues" in text
    config = load_with(user='[routing]\ntable = "never-cancel"\nunsafe = true\n')
    routes, notice = routes_for(config, None)
    assert routes.name == "never-cancel"
    assert notice.startswith("The routing table in use, `never-cancel`, does not keep these rules")


def test_an_unknown_table(error_of: Callable[..., str]) -> None:
    """The nearest one is named."""
    assert "did you mean `never-cancel`?" in error_of(user='[routing]\ntable = "never-cancle"\n')


def test_unsafe_excuses_no_mistake(error_of: Callable[..., str]) -> None:
    """Who accepts the risk of a table does not accept nonsense."""
    text = error_of(user=f"[routing]\nunsafe = true\n{QUEUED}{QUEUED.replace('here', 'too')}")
    assert "never decides anything" in text
    deaf = '[[route]]\nname = "deaf"\ncause = "steer"\nwhy = "No."\n'
    text = error_of(
        user=f'[routing]\nunsafe = true\n{deaf}deliver = [{{ to = "self", as = "none" }}]\n'
    )
    assert "home/config.toml:4:8: route `deaf`: action steer, but its cause `steer` does" in text
    assert "does not do that (row `word-steers`)" in text


def test_a_choice_for_a_folder_is_a_layer(paths: Paths, project: Path, load_with: Load) -> None:
    """It goes before the project's file and behind STEERSMAN_CONFIG; other folders do not see it."""
    file = choose_for_folder(paths, project, {"routing": {"table": "never-cancel", "unsafe": True}})
    assert file == folder_file(paths, project)
    assert file.stat().st_mode & 0o777 == 0o600
    config = load_with(project_file='busy_input_mode = "queue"\n')
    assert (config.routing.table, config.sources["routing.table"]) == ("never-cancel", str(file))
    assert load_with(named='[routing]\ntable = "steersman"\n').routing.table == "steersman"
    assert load(paths, project.parent, {}).routing.table == "steersman"


def test_a_sessions_choice_goes_before_the_configuration(load_with: Load) -> None:
    """With the configuration's routes in front, and a notice if it is unsafe."""
    config = load_with(user=THROUGH)
    routes, notice = routes_for(config, RoutesChoice(table="cancel-on-message", may_be_unsafe=True))
    assert routes.name == "cancel-on-message"
    assert "a converse message never stops a child" in notice
    said = dispose(routes.dispositions, "converse", "delegating", "interrupt", "keyword", "off")
    assert said.name == "through"
    with pytest.raises(ConfigError, match="a converse message never stops a child"):
        routes_for(config, RoutesChoice(table="cancel-on-message"))


def test_a_table_of_another_version_is_said_and_not_used(load_with: Load) -> None:
    """A session that chose a table which is not here goes by the configuration."""
    routes, notice = routes_for(
        load_with(), RoutesChoice(table="of-the-future", may_be_unsafe=True)
    )
    assert routes is STEERSMAN
    assert (
        notice == "This session's routing table `of-the-future` is not known here: `steersman` is."
    )
