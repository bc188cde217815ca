"""Mutation: no random change to a model may ever make fusion change what the model computes.

`DETOPS_MUTANTS` sets how many mutants are tried; `python -m tests.graph.mutants --mutants 5000` (and `tf_mutants`, and
`grammar` for graphs by a grammar) runs many and prints the counts.
"""

import os

import numpy as np
import pytest

from . import grammar, mutants, tf_mutants

COUNT = int(os.environ.get("DETOPS_MUTANTS", "600"))
SEED = 20240607
PARTS = 6
FLOOR = 0.15  # of the hundred mutants of a part; of thousands 27 % are harmless, and refusing everything must not pass
TF_FLOOR = 0.1
GRAMMAR_FLOOR = 0.45  # one in twenty counts pixels as nobody does


@pytest.mark.parametrize("part", range(PARTS))
def test_no_mutant_is_accepted_wrongly(part: int) -> None:
    counts, wrong = mutants.run(SEED + part, COUNT // PARTS)
    assert not wrong, "\n".join(f"{verdict.what}: {verdict.detail}" for verdict in wrong)
    assert counts["right"] >= FLOOR * sum(counts.values()), counts


@pytest.mark.parametrize("part", range(2))
def test_no_mutant_of_a_tensorflow_graph_is_accepted_wrongly(part: int) -> None:
    counts, wrong = tf_mutants.run(SEED + part, COUNT // 10)
    assert not wrong, "\n".join(f"{verdict.what}: {verdict.detail}" for verdict in wrong)
    assert counts["right"] >= TF_FLOOR * sum(counts.values()), counts


@pytest.mark.parametrize("part", range(2))
def test_no_graph_of_the_grammar_is_accepted_wrongly(part: int) -> None:
    counts, wrong = grammar.run(SEED + part, COUNT // 4)
    assert not wrong, "\n".join(f"{verdict.what}: {verdict.detail}" for verdict in wrong)
    assert counts["right"] >= GRAMMAR_FLOOR * sum(counts.values()), counts


def test_a_wrong_acceptance_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the comparison in the proof and the numeric check switched off, mutants are accepted wrongly."""
    monkeypatch.setattr("detops.graph._api.search", _careless_search)
    _, wrong = mutants.run(SEED, 60)
    assert wrong


def _careless_search(loaded: object) -> object:
    """Claim every candidate whose inputs and output look plausible, with the usual clip and no proof at all."""
    import numpy as np

    from detops.graph._schema import Parameters
    from detops.graph.ops._evaluate import cone
    from detops.graph.proof._prove import Proof
    from detops.graph.search._candidates import candidate_at, find_seeds
    from detops.graph.search._find import GRAPH_WORK, Result, finding_of
    from detops.graph.symbols._expressions import Budget

    results = []
    for graph in loaded.graphs:  # type: ignore[attr-defined]
        budget = Budget(GRAPH_WORK)
        for seed in list(find_seeds(graph, budget))[:1]:
            candidate = candidate_at(graph, seed, budget)
            if not candidate.predictions or not candidate.anchors:
                continue
            names = candidate.predictions[0], candidate.anchors[0], candidate.targets[0]
            nodes = tuple(cone(graph, names[2], frozenset(names[:2])))
            proof = Proof(*names, nodes, Parameters(4.422598361968994), np.dtype(np.float32), ())
            results.append(Result(finding_of(proof), proof, graph))
    return results


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_comparison_sees_a_small_difference(dtype: str) -> None:
    boxes = np.full((3, 4), 200, dtype)
    other = boxes.copy()
    other[1, 2] *= 1.04
    assert not mutants.difference([boxes], [boxes], {"b": boxes}, halves=True)
    assert mutants.difference([boxes], [other], {"b": boxes}, halves=True)


def test_infinity_is_the_largest_number_to_the_comparison_and_no_other() -> None:
    boxes, feeds = np.full((3, 4), np.inf, np.float32), {"b": np.ones((3, 4), np.float32)}
    largest, large = (np.full((3, 4), value, np.float32) for value in (np.finfo(np.float32).max, 1e38))
    assert not mutants.difference([boxes], [largest], feeds)
    assert mutants.difference([boxes], [large], feeds)
    assert mutants.difference([boxes], [-boxes], feeds)


def test_halves_may_be_the_largest() -> None:
    largest = np.full((3, 4), np.finfo(np.float16).max, np.float32)
    feeds = {"b": np.ones((3, 4), np.float32)}
    assert not mutants.difference([largest], [largest - 32], feeds, halves=True)
    assert mutants.difference([largest], [largest - 64], feeds, halves=True)


def test_a_box_that_overflows_may_be_nan_before_and_not_after() -> None:
    boxes, feeds = np.full((3, 4), np.inf, np.float32), {"b": np.ones((3, 4), np.float32)}
    unknown, usual = (np.full((3, 4), value, np.float32) for value in (np.nan, 1))
    assert not mutants.difference([unknown], [boxes], feeds)
    assert mutants.difference([boxes], [unknown], feeds)
    assert mutants.difference([unknown], [usual], feeds)
