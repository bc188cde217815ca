"""What a node costs in ONNX Runtime beside a built-in one, as a ratio: ``python -m asv_bench.node_cost``.

A chain of nodes runs at two lengths; the difference is the nodes' own cost, without that of the call. The two kinds of
node take turns in one process, so that a busy machine slows both.
"""

import statistics
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import detops.onnx

SHORT, LONG = 10, 210
ROUNDS = 200
# As in a model; ours compares and writes indices as well, the built-in ones do less per element.
KINDS = {
    "mmcv::cummax": ("cummax", "mmcv", {"dim": 0}, 2),
    "Relu": ("Relu", "", {}, 1),
    "CumSum": ("CumSum", "", {}, 1),
    "TopK": ("TopK", "", {}, 2),
}


def chain(kind: str, length: int, elements: int) -> onnxruntime.InferenceSession:
    """Return a session with so many nodes of a kind in a row."""
    operator, domain, attributes, outputs = KINDS[kind]
    second = {"CumSum": ["axis"], "TopK": ["count"]}.get(kind, [])
    nodes = [
        helper.make_node(
            operator, [f"x{i}", *second], [f"x{i + 1}", *[f"i{i}"] * (outputs - 1)], domain=domain, **attributes
        )
        for i in range(length)
    ]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [elements])],
        [helper.make_tensor_value_info(f"x{length}", TensorProto.FLOAT, [elements])],
        [
            helper.make_tensor("axis", TensorProto.INT64, [], [0]),
            helper.make_tensor("count", TensorProto.INT64, [1], [elements]),
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mmcv", 1)], ir_version=8
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return detops.onnx.session(model, sess_options=options)


def node_costs(elements: int) -> dict[str, float]:
    """Return the seconds that one node of each kind takes, the median of many rounds."""
    sessions = {(kind, length): chain(kind, length, elements) for kind in KINDS for length in (SHORT, LONG)}
    x = {"x0": np.random.default_rng(0).random(elements, np.float32)}
    seconds: dict[tuple[str, int], list[float]] = {key: [] for key in sessions}
    for _ in range(ROUNDS):
        for key, session in sessions.items():
            start = time.perf_counter()
            session.run([session.get_outputs()[0].name], x)
            seconds[key].append(time.perf_counter() - start)
    middle = {key: statistics.median(values) for key, values in seconds.items()}
    return {kind: (middle[kind, LONG] - middle[kind, SHORT]) / (LONG - SHORT) for kind in KINDS}


def main() -> None:
    """Print the cost of a node, and ours as a multiple of each built-in one's."""
    for elements in (16, 4096):
        costs = node_costs(elements)
        ours = costs["mmcv::cummax"]
        for kind, cost in costs.items():
            print(f"{elements:5} elements  {kind:14} {cost * 1e6:7.2f} us a node  ours / this {ours / cost:5.2f}")


if __name__ == "__main__":
    main()
