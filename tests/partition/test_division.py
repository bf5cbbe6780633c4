"""Partitions of random graphs: acyclic, convex, and the best there is."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nnrewrite.benchmarks.partition_peers import count_parts, group_as_onnx_runtime, merge_greedily
from nnrewrite.benchmarks.partition_search import draw, draw_large, find_least
from nnrewrite.engine.base.startup import replace
from nnrewrite.partition.division import divide, search
from nnrewrite.partition.network import OUTSIDE, Edge, Network
from nnrewrite.partition.parts import find_levels, find_parts, order_steps
from nnrewrite.partition.sides import choose_sides


@st.composite
def networks(draw: st.DrawFn, most: int = 12, part_cost: bool = True) -> Network:
    """Random units in topological order, with sizes, gains and a cost of parts."""
    count = draw(st.integers(1, most))
    users: list[set[int]] = [set() for _ in range(count + 1)]
    for head in range(count):
        for tail in draw(st.sets(st.integers(-1, head - 1), min_size=1, max_size=3)):
            users[tail].add(head)
    for tail in range(count):
        if not users[tail] or draw(st.booleans()):
            users[tail].add(OUTSIDE)
    sizes = draw(st.lists(st.integers(0, 9), min_size=count + 1, max_size=count + 1))
    edges = [Edge(tail, frozenset(users[tail]), sizes[tail]) for tail in range(-1, count) if users[tail]]
    return Network(
        tuple(draw(st.lists(st.booleans(), min_size=count, max_size=count))),
        tuple(edges),
        tuple(draw(st.lists(st.integers(0, 6), min_size=count, max_size=count))),
        draw(st.integers(0, 8)) if part_cost else 0,
    )


def is_ordered(network: Network, parts: Sequence[int]) -> bool:
    """Whether all can run part by part: the graph of parts and units of the host has no circle."""
    name = [part if part >= 0 else -2 - unit for unit, part in enumerate(parts)]
    arcs = {(name[tail], name[head]) for tail, head in network.iterate_arcs() if name[tail] != name[head]}
    left = set(name)
    while left:
        free = {one for one in left if not any(head == one and tail in left for tail, head in arcs)}
        if not free:
            return False
        left -= free
    return True


def is_connected(network: Network, units: Sequence[int]) -> bool:
    near = {unit: set() for unit in units}
    for tail, head in network.iterate_arcs():
        if tail in near and head in near:
            near[tail].add(head)
            near[head].add(tail)
    seen, work = {units[0]}, [units[0]]
    while work:
        for other in near[work.pop()] - seen:
            seen.add(other)
            work.append(other)
    return len(seen) == len(units)


def groupings(units: Sequence[int]) -> Iterator[list[list[int]]]:
    """Every way to put units into groups."""
    if not units:
        yield []
        return
    first, *rest = units
    for groups in groupings(rest):
        yield [[first], *groups]
        for place in range(len(groups)):
            yield [*groups[:place], [first, *groups[place]], *groups[place + 1 :]]


def least(network: Network) -> int:
    """The least that any answer costs, by trying all of them."""
    able = [unit for unit, taken in enumerate(network.supported) if taken]
    best = None
    for count in range(len(able) + 1):
        for chosen in itertools.combinations(able, count):
            device = [unit in chosen for unit in range(network.units)]
            for groups in groupings(chosen):
                cost = network.compute_cost(device, len(groups))
                if best is not None and cost >= best:
                    continue
                parts = [-1] * network.units
                for number, group in enumerate(groups):
                    for unit in group:
                        parts[unit] = number
                if is_ordered(network, parts):
                    best = cost
    assert best is not None
    return best


@pytest.mark.slow
@given(networks())
@settings(max_examples=100, deadline=None)
def test_no_part_waits_for_what_waits_for_it_and_those_without_a_cost_are_connected(network: Network) -> None:
    parts = find_parts(network, network.supported)
    assert is_ordered(network, parts)
    for number in {part for part in parts if part >= 0} if not network.part_cost else ():
        assert is_connected(network, [unit for unit, part in enumerate(parts) if part == number])


@given(networks(most=7))
@settings(max_examples=100, deadline=None)
def test_there_are_no_fewer_parts_in_which_the_same_units_could_run(network: Network) -> None:
    able = [unit for unit, taken in enumerate(network.supported) if taken]
    levels = find_levels(network.list_before(), network.supported)
    fewest = max((levels[unit] for unit in able), default=0)
    for groups in groupings(able):
        parts = [-1] * network.units
        for number, group in enumerate(groups):
            for unit in group:
                parts[unit] = number
        assert len(groups) >= fewest or not is_ordered(network, parts)
    found = count_parts(find_parts(replace(network, part_cost=1), network.supported))
    assert found == fewest <= count_parts(find_parts(replace(network, part_cost=0), network.supported))


@pytest.mark.slow
@given(networks())
@settings(max_examples=100, deadline=None)
def test_steps_run_everything_once_and_nothing_before_what_it_reads(network: Network) -> None:
    done: set[int] = set()
    for _, units in order_steps(network, find_parts(network, network.supported)):
        for tail, head in network.iterate_arcs():
            assert head not in units or tail in done or tail in units
        assert not done & set(units)
        done |= set(units)
    assert len(done) == network.units


@given(networks(most=7))
@settings(max_examples=60, deadline=None)
def test_small_graphs_are_divided_at_the_least_cost_there_is(network: Network) -> None:
    assert divide(network).cost == least(network)


@pytest.mark.slow
@given(networks(most=12, part_cost=False))
@settings(max_examples=60, deadline=None)
def test_the_cut_is_exact_where_parts_cost_nothing(network: Network) -> None:
    able = [unit for unit, taken in enumerate(network.supported) if taken]
    every = (
        network.compute_cost([unit in chosen for unit in range(network.units)], 0)
        for count in range(len(able) + 1)
        for chosen in itertools.combinations(able, count)
    )
    assert network.compute_cost(choose_sides(network), 0) == min(every)


def test_answers_and_the_search_for_larger_graphs_are_the_best_there_is() -> None:
    generator = np.random.default_rng(1)
    for _ in range(40):
        network = draw(generator)
        least = find_least(network)
        assert divide(network).cost == least
        device = search(network)
        levels = find_levels(network.list_before(), device)
        assert (
            network.compute_cost(device, max(level * here for level, here in zip(levels, device, strict=True))) == least
        )


@pytest.mark.thorough
@pytest.mark.slow
def test_a_hundred_thousand_units_take_seconds() -> None:
    network = draw_large(100_000)
    started = time.process_time()
    answer = divide(network)
    assert answer.count > 0
    assert time.process_time() - started < 60  # under ten seconds on an idle machine; a mistake takes for ever


def test_a_few_units_among_very_many_do_not_take_long() -> None:
    network = draw_large(10_000)
    able = tuple(unit % 900 == 7 for unit in range(network.units))
    started = time.process_time()
    assert divide(replace(network, supported=able)).count <= sum(able)
    assert time.process_time() - started < 30  # trying every answer would take minutes


@pytest.mark.thorough
@pytest.mark.slow
@given(networks(most=12))
@settings(max_examples=1000, deadline=None)
def test_a_thousand_graphs_have_no_more_parts_or_bytes_than_by_greedy_merging(network: Network) -> None:
    greedy = merge_greedily(network)
    cheap = replace(network, gains=(10**6,) * network.units, part_cost=1)
    answer = divide(cheap)
    assert answer.count <= min(count_parts(greedy), count_parts(group_as_onnx_runtime(network)))
    assert cheap.count_moved_bytes([part >= 0 for part in answer.parts]) <= cheap.count_moved_bytes(network.supported)


def test_parts_that_nothing_lies_between_become_one_where_parts_cost_something() -> None:
    edges = (Edge(OUTSIDE, frozenset({0, 1}), 4), Edge(0, frozenset({2}), 4), Edge(1, frozenset({2}), 4))
    network = Network((True, True, False), (*edges, Edge(2, frozenset({OUTSIDE}), 4)), (100,) * 3, 1)
    assert divide(network).count == count_parts(group_as_onnx_runtime(network)) == 1
    assert divide(replace(network, part_cost=0)).count == 2


def test_a_piece_is_of_the_part_that_reads_it_rather_than_of_one_before() -> None:
    """Of 0 -> 1 (host) -> 2 -> 4 and 3 -> 4, the last three are one part, although 3 could run with 0."""
    edges = [
        Edge(0, frozenset({1}), 4),
        Edge(1, frozenset({2}), 4),
        Edge(3, frozenset({4}), 4),
        Edge(2, frozenset({4}), 4),
    ]
    network = Network((True, False, True, True, True), (*edges, Edge(4, frozenset({OUTSIDE}), 4)), (100,) * 5, 1)
    parts = find_parts(network, network.supported)
    assert parts[2] == parts[3] == parts[4] != parts[0]
