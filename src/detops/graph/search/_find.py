"""From candidates to proofs and findings: tries the choices of inputs and output, and keeps the best reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from detops.graph._finding import Finding, Refusal
from detops.graph._schema import CENTER, ONES, ZEROS
from detops.graph.model._graph import Graph, Node
from detops.graph.ops._evaluate import cone
from detops.graph.proof._folded import NOT_FOUND, rebuild
from detops.graph.proof._parts import find_parts, joined
from detops.graph.proof._prove import Proof, prove
from detops.graph.search._candidates import Candidate, Seed, candidate_at, find_seeds
from detops.graph.search._named import named_decodes
from detops.graph.search._scope import common_scope, excluded, fitting_scopes, nodes_in, parents_of
from detops.graph.symbols._expressions import MAX_WORK, Budget

MAX_ATTEMPTS = 64
GRAPH_WORK = 1 << 26  # what all candidates of a graph may cost together
FIND_WORK = 1 << 26  # what it may cost to find them


@dataclass(frozen=True)
class Result:
    """A finding, and the proof where there is one that can be written into the graph."""

    finding: Finding
    proof: Proof | None
    graph: Graph


def find_in(graph: Graph) -> list[Result]:
    """Return what was found in one graph, proved or refused, in topological order."""
    whole = Budget(GRAPH_WORK)
    claimed: set[int] = set()
    results: list[Result] = []
    refused: dict[int, tuple[Candidate, Refusal]] = {}
    for seed in _seeds(graph, results):
        keys = [node.position for node in seed.exponentials]
        if claimed.intersection(keys):
            continue
        candidate = seed.bare
        try:
            candidate = candidate_at(graph, seed, whole)
            proof = _best_proof(graph, candidate, whole)
            _check_surroundings(graph, proof)
        except Refusal as refusal:
            for key in keys:
                if key not in refused or refused[key][1].depth < refusal.depth:
                    refused[key] = (candidate, refusal)
            continue
        claimed.update(keys)
        results.append(Result(finding_of(proof), proof, graph))
    told: set[int] = set()
    for key, (candidate, best) in refused.items():
        if key not in claimed and candidate.join.position not in told:
            told.add(candidate.join.position)
            results.append(Result(_refused(graph, candidate, best, whole), None, graph))
    results += _scopes_without_decode(graph, results)
    return sorted(_with_names(graph, results), key=lambda result: _position(graph, result.finding))


def _with_names(graph: Graph, results: list[Result]) -> list[Result]:
    """Add the decodes of other forms, of which a name says more than the refusal of what ends inside of them."""
    proved = {label for result in results if result.proof is not None for label in result.finding.nodes}
    named = named_decodes(graph, proved)
    inside = {label for finding in named for label in finding.nodes}
    ends = [graph.producer.get(result.finding.decoded_boxes or "") for result in results]
    left = [
        result
        for result, end in zip(results, ends, strict=True)
        if result.proof is not None or end is None or end.label not in inside
    ]
    taken = {label for result in left for label in result.finding.nodes}
    return left + [Result(finding, None, graph) for finding in named if taken.isdisjoint(finding.nodes)]


def _seeds(graph: Graph, results: list[Result]) -> Iterator[Seed]:
    """Yield where candidates may be; a result says so where a graph has too many to find them all."""
    try:
        yield from find_seeds(graph, Budget(FIND_WORK))
    except Refusal as refusal:
        results.append(Result(Finding("", (), reason=refusal.reason), None, graph))


def _position(graph: Graph, finding: Finding) -> int:
    node = graph.producer.get(finding.decoded_boxes or "")
    return len(graph.nodes) if node is None else node.position


def _best_proof(graph: Graph, candidate: Candidate, whole: Budget) -> Proof:
    """Prove the choice that covers most: inputs farthest upstream, output farthest downstream."""
    if not candidate.predictions:
        raise Refusal("box_predictions come from more than one tensor", depth=1)
    budget = Budget(min(MAX_WORK, whole.left))
    whole.left -= budget.left
    try:
        return _proof_of_any(graph, candidate, budget)
    except Refusal as refusal:
        try:
            return _proof_of_parts(graph, candidate, budget)
        except Refusal:
            raise refusal from None  # about the graph as it is
    finally:
        whole.left += max(budget.left, 0)


def _proof_of_parts(graph: Graph, candidate: Candidate, budget: Budget) -> Proof:
    """Prove what would be the decode if the corners weren't bounded before they are joined."""
    parts = find_parts(graph, candidate.join)
    if parts is None:
        raise Refusal("no corners are bounded before they are joined")
    budget.spend(len(graph.nodes))
    wider, target = joined(graph, parts)
    return replace(_proof_of_any(wider, replace(candidate, targets=(target,)), budget), parts=parts)


def _proof_of_any(graph: Graph, candidate: Candidate, budget: Budget) -> Proof:
    """Prove a candidate as it is, or with a Reshape or a Gather next to it."""
    try:
        return _first_proof(graph, candidate, budget, views=False)
    except Refusal as refusal:
        try:
            return _first_proof(graph, candidate, budget, views=True)
        except Refusal:
            raise refusal from None


def _first_proof(graph: Graph, candidate: Candidate, budget: Budget, *, views: bool) -> Proof:
    """Try the choices in turn, and return the first that is proved."""
    best: Refusal | None = None
    barred: set[str] = set()
    for target, predictions, anchors in islice(_choices(candidate), MAX_ATTEMPTS):
        try:
            nodes = cone(graph, target, _cuts(predictions, anchors), budget)
            scope, held = _excluded_in_scope(graph, nodes, budget)
            if scope in barred:
                continue
            proof = _proof_of(graph, predictions, anchors, target, budget, views=views)
            proof = _unscaled(graph, candidate, proof, budget)
            if held:
                barred.add(scope)
                reason = f"the scope {scope} holds {', '.join(held)}, which ScopeDecodeBboxPass excludes"
                raise Refusal(reason, depth=7)
            _check_transposes(graph, candidate, proof)
            return proof
        except Refusal as refusal:
            if best is None or refusal.depth > best.depth:
                best = refusal
    raise best or Refusal("no choice of inputs and output is left to try")


def _proof_of(
    graph: Graph, predictions: str, anchors: str | None, target: str, budget: Budget, *, views: bool
) -> Proof:
    """Prove one choice; anchors that are no tensor any more are rebuilt, as corners or as centers and sizes."""
    if anchors is not None:
        return prove(graph, predictions, anchors, target, budget, views=views)
    try:
        made = rebuild(graph, predictions, target, budget)
        return prove(graph, predictions, made, target, budget, views=views)
    except Refusal as refusal:
        if refusal.reason == NOT_FOUND:
            raise
        try:
            made = rebuild(graph, predictions, target, budget, CENTER)
            return prove(graph, predictions, made, target, budget, views=views)
        except Refusal:
            raise refusal from None


def _cuts(predictions: str, anchors: str | None) -> frozenset[str]:
    return frozenset(name for name in (predictions, anchors) if name)


def _choices(candidate: Candidate) -> Iterator[tuple[str, str, str | None]]:
    """Yield an output and two inputs; anchors that come from several tensors may have been folded into constants."""
    for target in candidate.targets:
        for predictions in candidate.predictions:
            for anchors in candidate.anchors or (None,):
                if predictions != anchors:
                    yield target, predictions, anchors


def _unscaled(graph: Graph, candidate: Candidate, proof: Proof, budget: Budget) -> Proof:
    """Leave one factor for all four coordinates outside: a plain DecodeBbox says more than equal scales."""
    values = proof.parameters
    if values.means != ZEROS or values.scales == ONES or len(set(values.scales)) > 1:
        return proof
    nearer = candidate.predictions[candidate.predictions.index(proof.box_predictions) + 1 :]
    for predictions in nearer:
        try:
            given = proof.made or proof.anchors
            plain = prove(
                graph, predictions, given, proof.decoded_boxes, budget, views=bool(proof.rows) or proof.swapped
            )
        except Refusal:
            continue
        if plain.parameters.scales == ONES:
            return plain
    return proof


def _excluded_in_scope(graph: Graph, nodes: Sequence[Node], budget: Budget) -> tuple[str, list[str]]:
    """Return the TensorFlow scope that holds the nodes, and what of the exclusion list it holds."""
    scope = common_scope(nodes) if graph.dialect == "tensorflow" else ""
    if not scope:
        return "", []
    budget.spend(len(graph.nodes))
    return scope, excluded(nodes_in(graph, scope), scope)


def _check_transposes(graph: Graph, candidate: Candidate, proof: Proof) -> None:
    """Refuse a decode between Transposes of which the last doesn't undo the first ones."""
    index = candidate.targets.index(proof.decoded_boxes)
    if not index:
        return
    ends = (proof.box_predictions, proof.anchors, candidate.targets[index - 1])
    around = [graph.producer.get(tensor) for tensor in ends]
    if all(node is not None and node.op == "Transpose" for node in around):
        labels = [node.label for node in around if node is not None]
        raise Refusal(f"{labels[2]} isn't the inverse of {labels[0]} and {labels[1]}", depth=7)


def _check_surroundings(graph: Graph, proof: Proof) -> None:
    """Refuse where something else reads a value from the exponential on: fusing would compute it twice."""
    inside = {node.position for node in proof.held}
    late: set[str] = set()
    for node in proof.held:
        if node.op == "Exp" or late.intersection(node.inputs):
            late.update(node.outputs)
    for node in proof.held:
        for tensor in node.outputs:
            if tensor not in late or tensor in proof.ends:
                continue
            outside = [reader.label for reader in graph.readers.get(tensor, ()) if reader.position not in inside]
            if outside or tensor in graph.outputs:
                reader = outside[0] if outside else "the graph's output"
                raise Refusal(f"{tensor} (inside the decode) is read outside it, by {reader}", depth=8)
        waiting = [waiter for waiter in graph.waiters.get(node.name, ()) if waiter.position not in inside]
        if waiting and proof.decoded_boxes not in node.outputs:
            raise Refusal(f"{waiting[0].label} waits (control edge) on {node.label}, inside the decode", depth=8)


def finding_of(proof: Proof) -> Finding:
    """Return the finding that a proof makes."""
    values = proof.parameters
    return Finding(
        scope=common_scope(proof.held),
        nodes=tuple(node.label for node in proof.held),
        box_predictions=proof.box_predictions,
        anchors=proof.anchors,
        decoded_boxes=proof.parts.join.outputs[0] if proof.parts else proof.decoded_boxes,
        operator=values.operator,
        decode_clip=values.decode_clip,
        lower_clip=values.lower_clip,
        scales=values.scales,
        means=values.means,
        anchor_form=values.anchor_form,
        offset=values.offset,
        added=tuple(number for number in proof.added for _ in "xy"),
        axis=values.axis,
        classes=values.classes,
        fused=True,
        form="delta",
    )


def _refused(graph: Graph, candidate: Candidate, refusal: Refusal, budget: Budget) -> Finding:
    """Describe a candidate that was not proved by what lies between its exponential and its output."""
    cuts = frozenset((*candidate.predictions[:1], *candidate.anchors[:1]))
    try:
        nodes = cone(graph, candidate.targets[-1], cuts, budget)
    except Refusal:
        nodes = [*candidate.exponentials, candidate.join]
    return Finding(
        scope=common_scope(nodes),
        nodes=tuple(node.label for node in nodes),
        box_predictions=candidate.predictions[0] if candidate.predictions else None,
        anchors=candidate.anchors[0] if candidate.anchors else None,
        decoded_boxes=candidate.targets[0],
        reason=refusal.reason,
    )


def _scopes_without_decode(graph: Graph, results: list[Result]) -> Iterator[Result]:
    """Explain the scopes that ScopeDecodeBboxPass would take by their counts, and that hold no candidate at all."""
    if graph.dialect != "tensorflow":
        return
    covered = {parent for result in results for parent in parents_of(result.finding.scope)}
    explained = {label for result in results for label in result.finding.nodes}
    for scope, nodes in fitting_scopes(graph).items():
        if scope in covered or any(node.label in explained for node in nodes):
            continue
        reason = "the scope has the operators of a decode in the right numbers, but its arithmetic isn't one"
        yield Result(Finding(scope, tuple(node.label for node in nodes), reason=reason), None, graph)
