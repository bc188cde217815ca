"""onnxruntime as a peer: a model of one node, run as a function without arguments."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import detops


def one_node(
    operator: str,
    inputs: Mapping[str, np.ndarray | None],
    attributes: Mapping[str, Any] | None = None,
    *,
    outputs: int = 1,
    opset: int = 20,
    threads: int | None = None,
) -> Callable[[], list[np.ndarray]]:
    """Return a function that runs an ONNX operator on these inputs.

    Parameters
    ----------
    operator : str
        Its type in ONNX's default domain.
    inputs : mapping of str to array or None
        In the order of the operator's inputs; None for one that is left out.
    attributes : mapping, optional
        The node's attributes.
    outputs : int, default 1
        How many outputs to ask for.
    opset : int, default 20
        The version of the operator set. onnxruntime implements few of the operators of 22.
    threads : int, optional
        Threads inside the operator; None for as many as detops uses.

    Returns
    -------
    callable
        The first call makes the session; it raises ImportError where onnx or onnxruntime is not installed.
    """
    feed = {name: array for name, array in inputs.items() if array is not None}
    made: list[Any] = []

    def run() -> list[np.ndarray]:
        if not made:
            made.append(_session(operator, inputs, dict(attributes or {}), outputs, opset, threads))
        return made[0].run(None, feed)

    return run


def _session(
    operator: str,
    inputs: Mapping[str, np.ndarray | None],
    attributes: dict[str, Any],
    outputs: int,
    opset: int,
    threads: int | None,
) -> Any:
    import onnx
    import onnxruntime

    given = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
        if array is not None
    ]
    names = [name if array is not None else "" for name, array in inputs.items()]
    results = [f"result{i}" for i in range(outputs)]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(operator, names, results, **attributes)],
        operator,
        given,
        [onnx.ValueInfoProto(name=name) for name in results],
    )
    # The oldest file format that knows the operator set: onnxruntime is slower to learn new ones than onnx.
    model = onnx.helper.make_model_gen_version(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads or detops.get_num_threads()
    settings.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
