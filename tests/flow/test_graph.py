"""The order of steps, over random graphs."""

import itertools
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.workflows.flow.graph import ancestors, find_cycle, levels, order_problems, waits_for
from steersman.workflows.flow.plan import plan_of
from steersman.workflows.flow.spec import RunAction, StepSpec, WorkflowSpec

Needs = Mapping[str, tuple[str, ...]]


@st.composite
def any_needs(draw: st.DrawFn) -> Needs:
    """Draw a graph that may well have circles."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 9)))]
    lists = st.lists(st.sampled_from(names), unique=True, max_size=4)
    return {name: tuple(draw(lists)) for name in names}


@st.composite
def ordered_steps(draw: st.DrawFn) -> tuple[StepSpec, ...]:
    """Draw steps without a circle, in an order that says nothing; the last of them may be final."""
    count = draw(st.integers(1, 12))
    usual = draw(st.integers(1, count))
    steps: list[StepSpec] = []
    for number in range(count):
        known = [f"s{one}" for one in range(number)]
        needs = draw(st.lists(st.sampled_from(known), unique=True, max_size=4)) if known else []
        action = RunAction(words=("true",))
        steps.append(
            StepSpec(
                id=f"s{number}",
                number=number,
                action=action,
                needs=tuple(needs),
                is_final=number >= usual,
            )
        )
    return tuple(draw(st.permutations(steps)))


def reaches(needs: Needs, start: str) -> set[str]:
    """Walk over all that a name needs, the plain way."""
    found: set[str] = set()
    waiting = [*needs[start]]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs[name]
    return found


@given(any_needs())
@settings(max_examples=300, deadline=None)
def test_a_circle_is_found_exactly_when_there_is_one(needs: Needs) -> None:
    """What is found is one; and where nothing is found, no name leads back to itself."""
    cycle = find_cycle(needs)
    if cycle:
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1
        pairs = itertools.pairwise(cycle)
        assert all(need in needs[name] for name, need in pairs)
    assert bool(cycle) == any(name in reaches(needs, name) for name in needs)
    steps = [
        StepSpec(id=name, number=n, action=RunAction(words=("true",)), needs=needs[name])
        for n, name in enumerate(needs)
    ]
    assert bool(list(order_problems(steps))) == bool(cycle)


@given(any_needs())
@settings(max_examples=300, deadline=None)
def test_levels_and_ancestors(needs: Needs) -> None:
    """A level holds what needs only earlier ones; what is in or behind a circle is in none."""
    found = levels(needs)
    level_of = {name: number for number, names in enumerate(found) for name in names}
    for name in needs:
        above = reaches(needs, name)
        assert ancestors(needs)[name] == above
        behind_circle = any(one in reaches(needs, one) for one in {name, *above})
        assert (name in level_of) != behind_circle
        if name in level_of:
            least = max((level_of[need] + 1 for need in needs[name]), default=0)
            assert level_of[name] == least


@given(ordered_steps())
@settings(max_examples=300, deadline=None)
def test_a_plan_has_each_step_once_behind_all_it_needs(steps: tuple[StepSpec, ...]) -> None:
    """So it can be run one by one; the steps at the end come behind all others."""
    plan = plan_of(
        WorkflowSpec(name="job", file="job.toml", folder=".", source="", steps=steps), {}
    )
    order = [step.step.id for step in plan.steps]
    assert sorted(order) == sorted(step.id for step in steps)
    place = {name: number for number, name in enumerate(order)}
    for name, needs in waits_for(steps).items():
        assert all(place[need] < place[name] for need in needs)
