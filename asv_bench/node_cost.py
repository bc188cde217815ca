"""The cost of a node in ONNX Runtime beside a built-in one, as a ratio: ``python -m asv_bench.node_cost``.

A chain of nodes runs at two lengths; the difference is the nodes' own cost, without that of the call. The two kinds of
node take turns in one process, so that a busy machine slows both.
"""

import statistics
import time
from functools import partial
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import detops.onnx

SHORT, LONG = 10, 210
ROUNDS = 100
BUILT_IN = ""
# The operator's name in ONNX and in MMCV, their attributes, and the shapes of its inputs, which hold n elements.
PAIRS = {
    "InstanceNormalization": ("MMCVInstanceNormalization", {}, {}, lambda n: [(1, 2, n // 2), (2,), (2,)]),
    "GridSample": (
        "grid_sampler",
        {"mode": "bilinear"},
        {"interpolation_mode": 0},
        lambda n: [(1, 1, 4, n // 4), (1, 4, n // 4, 2)],
    ),
}


def chain(operator: str, domain: str, attributes: dict[str, Any], shapes: list[tuple[int, ...]], length: int) -> Any:
    """Return a session with `length` nodes of an operator in a row, each fed by the one before, and its inputs."""
    names = [f"c{i}" for i in range(1, len(shapes))]
    nodes = [
        helper.make_node(operator, [f"x{i}", *names], [f"x{i + 1}"], domain=domain, **attributes) for i in range(length)
    ]
    inputs = dict(zip(["x0", *names], shapes, strict=True))
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(f"x{length}", TensorProto.FLOAT, shapes[0])],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mmcv", 1)], ir_version=8
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    rng = np.random.default_rng(0)
    arrays = {name: rng.random(shape, np.float32) for name, shape in inputs.items()}
    return partial(detops.onnx.session(model, sess_options=options).run, None, arrays)


def node_costs(elements: int) -> dict[tuple[str, str], float]:
    """Return the seconds that one node takes, by operator and domain, the median of many rounds."""
    calls = {}
    for name, (ours, theirs_with, ours_with, shapes) in PAIRS.items():
        for length in (SHORT, LONG):
            calls[name, BUILT_IN, length] = chain(name, BUILT_IN, theirs_with, shapes(elements), length)
            calls[name, "mmcv", length] = chain(ours, "mmcv", ours_with, shapes(elements), length)
    seconds: dict[tuple[str, str, int], list[float]] = {key: [] for key in calls}
    for _ in range(ROUNDS):
        for key, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[key].append(time.perf_counter() - start)
    middle = {key: statistics.median(values) for key, values in seconds.items()}
    return {
        (name, domain): (middle[name, domain, LONG] - middle[name, domain, SHORT]) / (LONG - SHORT)
        for name in PAIRS
        for domain in (BUILT_IN, "mmcv")
    }


def main() -> None:
    """Print the cost of a node, and ours as a multiple of the built-in one's."""
    for elements in (16, 4096):
        costs = node_costs(elements)
        for name in PAIRS:
            ours, theirs = costs[name, "mmcv"], costs[name, BUILT_IN]
            print(
                f"{elements:5} elements  {name:22} detops {ours * 1e6:7.2f} us a node, "
                f"built in {theirs * 1e6:7.2f} us, ratio {ours / theirs:5.2f}"
            )


if __name__ == "__main__":
    main()
