"""From a file to a spec."""

from collections.abc import Callable

from steersman.workflows.flow.spec import (
    AgentAction,
    GoalSpec,
    Output,
    Retry,
    RunAction,
    StepSpec,
    WorkflowSpec,
)

Read = Callable[[str], WorkflowSpec]

MIGRATE = """\
    [workflow]
    name = "migrate"
    description = "Move a code base, file by file"
    [workflow.vars]
    glob = "src/**/*.ts"
    [agents.coder]
    tools = ["read", "edit", "shell"]

    [[step]]
    id = "find"
    run = ["git", "ls-files", "{{ vars.glob }}"]
    output = "lines"
    [[step]]
    id = "migrate"
    needs = ["find"]
    for_each = "steps.find.output"
    parallel = 4
    agent = "coder"
    prompt = "Rewrite {{ item }} to use zod."
    retry = { max = 2, backoff = 0.5 }
    timeout = 300.0
    idempotent = true
    [[step]]
    id = "test"
    needs = ["migrate"]
    run = ["npm", "test"]
    [[step]]
    id = "fix"
    needs = ["test"]
    when = "steps.test.exit_code != 0"
    agent = "coder"
    prompt = "Make the tests pass:\\n{{ steps.test.output }}"
    goal = { text = "npm test succeeds", gates = [["npm", "test"]], max_turns = 5 }

    [[route]]
    name = "talk-while-migrating"
    message = "converse"
    when = { session = "delegating" }
    deliver = [{ to = "children.active", as = "steer" }]
    ack = "steered_child"
    """


def test_a_whole_file_becomes_a_spec(read: Read) -> None:
    """Steps come in the order of the file, with all they say and the defaults of the rest."""
    spec = read(MIGRATE)
    assert spec.steps == (
        StepSpec(
            id="find",
            number=0,
            action=RunAction(words=("git", "ls-files", "{{ vars.glob }}")),
            output=Output(form="lines"),
        ),
        StepSpec(
            id="migrate",
            number=1,
            action=AgentAction(prompt="Rewrite {{ item }} to use zod.", agent="coder"),
            needs=("find",),
            for_each="steps.find.output",
            parallel=4,
            retry=Retry(max=2, backoff=0.5),
            timeout=300.0,
            idempotent=True,
        ),
        StepSpec(id="test", number=2, action=RunAction(words=("npm", "test")), needs=("migrate",)),
        StepSpec(
            id="fix",
            number=3,
            action=AgentAction(
                prompt="Make the tests pass:\n{{ steps.test.output }}",
                agent="coder",
                goal=GoalSpec(text="npm test succeeds", gates=(("npm", "test"),), max_turns=5),
            ),
            needs=("test",),
            when="steps.test.exit_code != 0",
            handles=frozenset({"test"}),
        ),
    )
    assert (spec.name, spec.description) == ("migrate", "Move a code base, file by file")
    assert (spec.variables, spec.parallel, spec.timeout) == ({"glob": "src/**/*.ts"}, 8, 0.0)
    assert spec.settings["agents"] == {"coder": {"tools": ["read", "edit", "shell"]}}
    assert [route["name"] for route in spec.settings["route"]] == ["talk-while-migrating"]


def test_a_failed_retry_waits_twice_as_long_each_time() -> None:
    """The first wait is the back-off, then it doubles, up to ten minutes."""
    retry = Retry(max=20, backoff=1.5)
    assert [retry.delay(attempt) for attempt in (1, 2, 3, 20)] == [1.5, 3.0, 6.0, 600.0]


def test_a_condition_on_the_end_of_a_need_handles_its_failure(read: Read) -> None:
    """What a step said is not how it ended."""
    text = """\
        [workflow]
        [[step]]
        id = "a"
        run = ["true"]
        [[step]]
        id = "b"
        needs = ["a"]
        when = "steps.a.{field}"
        run = ["true"]
        """
    handled = {field: read(text.replace("{field}", field)).step("b").handles for field in FIELDS}
    assert handled == {"output": frozenset(), "status": {"a"}, "exit_code": {"a"}, "error": {"a"}}


FIELDS = ("output", "status", "exit_code", "error")
