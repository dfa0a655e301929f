"""What a run would do, as text and as a diagram."""

from collections.abc import Callable

from steersman.workflows.flow.plan import draw_plan, plan_data, plan_mermaid, plan_of
from steersman.workflows.flow.spec import WorkflowSpec

JOB = """\
    [workflow]
    name = "job"
    [workflow.vars]
    places = ["here", "there"]
    [[step]]
    id = "sum-up"
    needs = ["look", "list"]
    when = "steps.list.output != '<none>'"
    agent = "assistant"
    prompt = \"\"\"
    Sum this up for {{ vars.places[0] }}:
    {{ steps.look.output }}\"\"\"
    [[step]]
    id = "look"
    for_each = "vars.places"
    parallel = 2
    run = ["ls", "{{ vars.places[0] }}", "{{ item }}"]
    retry = { max = 2 }
    timeout = 1.5
    [[step]]
    id = "list"
    shell = "ls | sort"
    continue_on_error = true
    [[step]]
    id = "tidy"
    finally = true
    run = ["true"]
    """


def test_a_plan_as_text(read: Callable[[str], WorkflowSpec]) -> None:
    """A line a step, in order, with what is known of the variables filled in."""
    spec = read(JOB)
    assert draw_plan(plan_of(spec, spec.variables)).splitlines() == [
        "job: 4 steps",
        "      1  look    ls here {{ item }}",
        "                   2 items, 2 at a time",
        "                   tried 3 times",
        "                   1.5 s at most",
        "         list    sh: ls | sort",
        "                   may fail",
        "      2  sum-up  assistant: Sum this up for here: {{ steps.look.output }}",
        "                   when steps.list.output != '<none>'",
        "finally  tidy    true",
    ]


def test_a_plan_as_a_diagram(read: Callable[[str], WorkflowSpec]) -> None:
    """Mermaid: solid arrows for needs, dotted ones to the end; nothing in a text is markup."""
    spec = read(JOB)
    assert plan_mermaid(plan_of(spec, spec.variables)).splitlines() == [
        "flowchart TD",
        '    s1["look<br>2 items, 2 at a time<br>tried 3 times<br>1.5 s at most"]',
        '    s2["list<br>may fail"]',
        "    s0{{\"sum-up<br>when steps.list.output != '&lt;none&gt;'\"}}",
        '    s3["tidy"]',
        "    s1 --> s0",
        "    s2 --> s0",
        "    s0 -.-> s3",
    ]


def test_a_plan_as_data(read: Callable[[str], WorkflowSpec]) -> None:
    """How many items there are is null where only the run can tell."""
    spec = read(
        JOB.replace('"vars.places"', '"steps.list.output.split()"').replace(
            "parallel = 2", 'needs = ["list"]'
        )
    )
    found = {
        step["step"]: (step["level"], step["items"])
        for step in plan_data(plan_of(spec, {}))["steps"]
    }
    assert found == {"list": (1, 0), "look": (2, None), "sum-up": (3, 0), "tidy": (4, 0)}
