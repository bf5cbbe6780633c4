"""Maximum flow through a network, and the minimum cut that it proves (Dinic 1970)."""

from __future__ import annotations

from collections.abc import Iterable


def find_source_side(count: int, source: int, sink: int, arcs: Iterable[tuple[int, int, int]]) -> set[int]:
    """The nodes on the source's side of a minimum cut; of all such cuts, that with the fewest of them.

    Nodes are numbered below `count`; an arc is its tail, its head and its capacity, an integer of any size. What is
    found is what the source still reaches over arcs that a maximum flow leaves capacity on.
    """
    heads: list[int] = []
    left: list[int] = []
    leaving: list[list[int]] = [[] for _ in range(count)]
    for tail, head, capacity in arcs:  # arc n leads forth and arc n ^ 1 back
        leaving[tail].append(len(heads))
        leaving[head].append(len(heads) + 1)
        heads += head, tail
        left += capacity, 0
    while True:
        distance = _measure_distances(source, sink, heads, left, leaving)
        if sink not in distance:
            return set(distance)
        _fill_paths(source, sink, heads, left, leaving, distance)


def _measure_distances(
    source: int, sink: int, heads: list[int], left: list[int], leaving: list[list[int]]
) -> dict[int, int]:
    """How many arcs with capacity lead from the source to each node, as far as the sink is; all where it is not met."""
    distance = {source: 0}
    front = [source]
    while front and sink not in distance:
        reached = []
        for node in front:
            for arc in leaving[node]:
                if left[arc] and (head := heads[arc]) not in distance:
                    distance[head] = distance[node] + 1
                    reached.append(head)
        front = reached
    return distance


def _fill_paths(
    source: int, sink: int, heads: list[int], left: list[int], leaving: list[list[int]], distance: dict[int, int]
) -> None:
    """Send flow until no shortest path has capacity from its start to its end."""
    tried = dict.fromkeys(distance, 0)
    path: list[int] = []
    node = source
    while True:
        if node == sink:
            amount = min(left[arc] for arc in path)
            for arc in path:
                left[arc] -= amount
                left[arc ^ 1] += amount
            full = next(index for index, arc in enumerate(path) if not left[arc])
            node = heads[path[full] ^ 1]
            del path[full:]
        arcs = leaving[node]
        for index in range(tried[node], len(arcs)):
            arc = arcs[index]
            if left[arc] and distance.get(heads[arc]) == distance[node] + 1:
                tried[node] = index
                path.append(arc)
                node = heads[arc]
                break
        else:
            if not path:
                return
            del distance[node]  # a dead end
            node = heads[path.pop() ^ 1]
            tried[node] += 1
