"""TensorFlow graphs: the same fixtures as .pb, the text form, SavedModels, the scope rule, and unknown fields."""

import importlib.util
import json
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from detops.graph import find_decode_bbox, fuse_decode_bbox
from detops.graph.model._load import load
from detops.graph.model._tf_schema import messages
from detops.graph.model._tf_shapes import Shapes
from detops.graph.search._scope import counts_fit, fitting_scopes

from . import graph_def_format, interpreter
from .models import DATA, golden, index

REASONS = {
    "neg_clip_tensor": "'clip:0', which is not a constant",
    "neg_concat_batch_axis": "boxes are mixed",
    "neg_concat_order": "corners come in the order x2, y2, x1, y1",
    "neg_control_dep": "anchors_after waits (control edge) on rpn/decode_bbox_target/add_1",
    "neg_excluded_ops_in_scope": "holds Greater, Squeeze, Gather_2, TopKV2, boolean_mask, which",
    "neg_inner_used_outside": "is read outside it, by scale_sum",
    "neg_maximum": "Maximum in place of Minimum",
    "neg_min_on_xy": "act on tx and ty",
    "neg_split_axis": "both axes are mixed",
    "neg_transpose_wrong_inverse": "transpose_2 isn't the inverse of",
}
FUSED = sorted(name for name, entry in index().items() if entry["fuse"])


def graph_def(name: str) -> Any:
    return messages()["GraphDef"].FromString((DATA / f"{name}.pb").read_bytes())


def parse(data: bytes) -> Any:
    return messages()["GraphDef"].FromString(data)


@pytest.fixture(params=["interpreter", "tensorflow"])
def execute(request: pytest.FixtureRequest) -> Any:
    """Return a function that runs a GraphDef: in our interpreter, and in TensorFlow where it is installed."""
    if request.param == "interpreter":
        return interpreter.run
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed")
    return _run_tensorflow


def _run_tensorflow(graph: Any, feeds: dict[str, Any], outputs: list[str]) -> list[Any]:
    import tensorflow

    tensorflow_graph = tensorflow.Graph()
    with tensorflow_graph.as_default():
        tensorflow.import_graph_def(tensorflow.compat.v1.GraphDef.FromString(graph.SerializeToString()), name="")
    with tensorflow.compat.v1.Session(graph=tensorflow_graph) as session:
        return session.run([f"{name}:0" for name in outputs], {f"{key}:0": value for key, value in feeds.items()})


def test_the_table_of_reasons_is_complete() -> None:
    assert set(REASONS) | set(FUSED) == set(index())


@pytest.mark.parametrize("name", sorted(REASONS))
def test_decoy_is_refused_with_its_reason(name: str) -> None:
    data = (DATA / f"{name}.pb").read_bytes()
    fused, findings = fuse_decode_bbox(data)
    assert [finding.fused for finding in findings] == [False]
    assert REASONS[name] in findings[0].reason
    assert findings[0].scope == index()[name]["scope"]
    assert parse(fused) == parse(data)


@pytest.mark.parametrize("name", FUSED)
def test_scope_is_fused(name: str, execute: Any) -> None:
    entry = index()[name]
    before = graph_def(name)
    data, findings = fuse_decode_bbox(before.SerializeToString())
    assert isinstance(data, bytes)
    after = parse(data)
    operator = entry.get("op", "DecodeBbox")
    assert [finding.fused for finding in findings] == [True] * entry.get("n_fuse", 1)
    for finding in findings:
        assert finding.operator == operator
        assert finding.axis == entry.get("axis", -1)
        assert finding.scales == tuple(entry.get("scales", (1, 1, 1, 1)))
        assert finding.scope.startswith(entry["scope"].partition("*")[0])
    made = [node for node in after.node if node.op == operator]
    assert [node.attr["decode_clip"].f for node in made] == [finding.decode_clip for finding in findings]
    assert not any(node.op == "Exp" for node in after.node)
    assert {node.name for node in after.node} <= {node.name for node in before.node}
    assert {node.name for node in before.node if node.op == "Placeholder"} <= {node.name for node in after.node}
    assert after.versions == before.versions
    feeds, wanted = golden(name)
    with np.errstate(all="ignore"):
        left, right = execute(before, feeds, entry["outputs"]), execute(after, feeds, entry["outputs"])
    for output, one, other in zip(entry["outputs"], left, right, strict=True):
        scale = np.abs(wanted[output].astype(np.float64)).max()
        eps = float(np.finfo(one.dtype).eps)
        if "op" in entry:
            np.testing.assert_allclose(one, other, rtol=0, atol=4 * eps * scale)
        else:
            np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(other, wanted[output], rtol=0, atol=8 * eps * scale)


DETECTORS = {
    "tensorpack_rpn": ("decode_bbox_target", "rpn/Reshape:0", "narrow_to/Slice:0", "DecodeBbox"),
    "tensorpack_frcnn": ("fastrcnn", "fastrcnn/Reshape:0", "fastrcnn/Tile:0", "DecodeBboxV2"),
    "object_detection_ssd": ("Postprocessor", "encodings:0", "Postprocessor/anchors:0", "DecodeBboxV2"),
}


@pytest.mark.parametrize("name", DETECTORS)
def test_decode_of_a_detector_is_fused(name: str, execute: Any) -> None:
    """Graphs that `make_tensorflow` writes: anchors are constants, cut to the map, or tiled over classes or a batch."""
    before = graph_def(f"tensorflow/{name}")
    data, (finding,) = fuse_decode_bbox(before.SerializeToString())
    scope, predictions, anchors, operator = DETECTORS[name]
    assert (finding.fused, finding.scope, finding.operator) == (True, scope, operator)
    assert (finding.box_predictions, finding.anchors) == (predictions, anchors)
    after = parse(data)
    assert not any(node.op == "Exp" for node in after.node)
    feeds, wanted = golden(f"tensorflow/{name}")
    for graph in (before, after):
        (got,) = execute(graph, feeds, ["boxes"])
        np.testing.assert_allclose(got, wanted["boxes"], rtol=1e-5, atol=1e-3)


def test_coordinates_first_with_scales(execute: Any) -> None:
    before = graph_def("pos_transpose_4chw")
    _constant(before, "rpn/decode_bbox_target/scale", np.array([10, 10, 5, 5], np.float32))
    scaled = before.node.add(name="rpn/decode_bbox_target/scaled", op="RealDiv")
    scaled.attr["T"].type = 1
    scaled.input.extend(["rpn/decode_bbox_target/transpose", "rpn/decode_bbox_target/scale"])
    next(node for node in before.node if node.op == "Reshape").input[0] = scaled.name
    data, (finding,) = fuse_decode_bbox(before.SerializeToString())
    assert (finding.operator, finding.axis, finding.scales) == ("DecodeBboxV2", 0, (10, 10, 5, 5))
    feeds, _ = golden("pos_transpose_4chw")
    (left,), (right,) = execute(before, feeds, ["boxes"]), execute(parse(data), feeds, ["boxes"])
    np.testing.assert_array_equal(left, right)


def test_deepest_scope_matches_and_its_parents_do_not() -> None:
    findings = find_decode_bbox(DATA / "pos_fpn_3_levels.pb")
    assert sorted(finding.scope for finding in findings) == [
        f"fpn/level_{level}/decode_bbox_target" for level in range(3)
    ]
    graph = load(DATA / "pos_fpn_3_levels.pb").graphs[0]
    assert counts_fit([node for node in graph.nodes if node.name.startswith("fpn/level_0/")])  # a parent would fit
    assert sorted(fitting_scopes(graph)) == sorted(finding.scope for finding in findings)


def test_scope_with_the_right_counts_and_no_decode_is_explained() -> None:
    graph = graph_def("pos_concat_last_axis")
    for node in graph.node:
        if node.op == "Exp":
            node.op = "Softplus"
    findings = find_decode_bbox(graph.SerializeToString())
    assert [(finding.scope, finding.fused) for finding in findings] == [("rpn/decode_bbox_target", False)]
    assert "operators of a decode in the right numbers" in findings[0].reason


def test_text_comes_back_as_text(tmp_path: Any) -> None:
    text = text_format.MessageToString(graph_def("pos_transpose_4chw"))
    fused, findings = fuse_decode_bbox(text)
    assert isinstance(fused, str)
    assert (findings[0].fused, findings[0].axis) == (True, 0)
    binary, _ = fuse_decode_bbox((DATA / "pos_transpose_4chw.pb").read_bytes())
    assert text_format.Parse(fused, messages()["GraphDef"]()) == parse(binary)
    path = tmp_path / "graph.pbtxt"
    path.write_text(text)
    assert fuse_decode_bbox(path)[0] == fused.encode()


def test_the_schema_is_tensorflows() -> None:
    """A text graph needs a name for each field and constant that TensorFlow knows."""
    stored = json.loads(graph_def_format.STORED.read_text(encoding="utf-8"))["format"]
    assert graph_def_format.described(messages()["GraphDef"].DESCRIPTOR) == stored


NOT_OURS_TO_READ = """
node {
  name: "narrow" op: "Placeholder"
  attr { key: "dtype" value { type: DT_INT4 } } attr { key: "next" value { type: DT_FLOAT4_E2M1FN_REF } }
  experimental_type { type_id: TFT_PRODUCT args { type_id: TFT_TENSOR args { type_id: TFT_INT32 } } }
}
debug_info {
  files: "model.py"
  frames_by_id { key: 7 value { file_index: 0 line: 12 col: 0 func: "decode" } }
  traces { key: "narrow" value { frame_id: 7 frame_id: 8 } } name_to_trace_id { key: "narrow" value: 7 }
}
"""


def test_text_keeps_what_is_not_ours_to_read() -> None:
    more = text_format.Parse(NOT_OURS_TO_READ, messages()["GraphDef"]())
    fused, findings = fuse_decode_bbox(text_format.MessageToString(graph_def("pos_half")) + NOT_OURS_TO_READ)
    assert findings[0].fused
    back = text_format.Parse(fused, messages()["GraphDef"]())
    assert back.debug_info == more.debug_info
    assert back.debug_info.frames_by_id[7].HasField("file_index")
    assert more.node[0] in back.node


def test_decode_at_the_end_of_a_graph_is_fused(execute: Any) -> None:
    """Its last Reshape is an output by its name, which the node takes over."""
    before = graph_def("pos_concat_last_axis")
    end = next(place for place, node in enumerate(before.node) if node.name.endswith("/Reshape_2"))
    output = before.node[end].name
    del before.node[end + 1 :]
    data, (finding,) = fuse_decode_bbox(before.SerializeToString())
    assert (finding.fused, finding.decoded_boxes) == (True, f"{output}:0")
    feeds, _ = golden("pos_concat_last_axis")
    left, right = (execute(graph, feeds, [output])[0] for graph in (before, parse(data)))
    np.testing.assert_array_equal(left, right)


def two_stages(scales: tuple[float, ...]) -> Any:
    """Return the decode of the fixture with classes twice, the second time with other scales."""
    first = graph_def("v2_od_api_min80")
    both = messages()["GraphDef"](versions=first.versions)
    for stage in (1, 2):
        for node in first.node:
            copy = both.node.add()
            copy.CopyFrom(node)
            copy.name = f"stage_{stage}/{node.name}"
            copy.input[:] = [f"stage_{stage}/{name}" for name in node.input]
    if scales:
        listed = [node for node in both.node if node.name.startswith("stage_2/Postprocessor/Decode/truediv")]
        divisions = [node for node in listed if node.op == "RealDiv"][: len(scales)]
        for node, scale in zip(divisions, scales, strict=True):
            _constant(both, f"{node.name}/other", np.array(scale, np.float32))
            node.input[1] = f"{node.name}/other"
    return both


def placeholders(function: Any) -> list[str]:
    values = [value for node in function.node_def for value in node.attr.values()]
    return [value.placeholder for value in values if value.WhichOneof("value") == "placeholder"]


@pytest.mark.parametrize("name", ["pos_half", "pos_transpose_4chw", "v2_od_api_min80"])
def test_function_stands_by_itself(name: str) -> None:
    """What loads a SavedModel, and TensorFlow Lite, take it away from the nodes that give its attributes."""
    after = parse(fuse_decode_bbox((DATA / f"{name}.pb").read_bytes())[0])
    (function,) = after.library.function
    assert placeholders(function) == []
    (node,) = (node for node in after.node if node.op == function.signature.name)
    assert {each.name: each.default_value for each in function.signature.attr} == dict(node.attr)


@pytest.mark.parametrize("scales", [(), (20, 20, 10, 10)])
def test_two_decodes_of_one_graph(execute: Any, scales: tuple[float, ...]) -> None:
    """With other numbers, the function reads them from its node, and a SavedModel has room for one of both."""
    before = two_stages(scales)
    data, findings = fuse_decode_bbox(before.SerializeToString())
    assert [finding.fused for finding in findings] == [True, True]
    after = parse(data)
    (function,) = after.library.function
    assert bool(placeholders(function)) == bool(scales)
    given, _ = golden("v2_od_api_min80")
    feeds = {f"stage_{stage}/{key}": value for stage in (1, 2) for key, value in given.items()}
    outputs = [f"stage_{stage}/{name}" for stage in (1, 2) for name in index()["v2_od_api_min80"]["outputs"]]
    for left, right in zip(execute(before, feeds, outputs), execute(after, feeds, outputs), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-4)
    saved = messages()["SavedModel"]()
    saved.meta_graphs.add().graph_def.CopyFrom(before)
    data, findings = fuse_decode_bbox(saved.SerializeToString())
    assert [finding.fused for finding in findings] == [True, not scales]
    assert not scales or "another function DecodeBboxV2 already, with other numbers in it" in findings[1].reason
    assert placeholders(messages()["SavedModel"].FromString(data).meta_graphs[0].graph_def.library.function[0]) == []


def test_saved_model_keeps_all_but_the_graph(tmp_path: Any) -> None:
    saved = messages()["SavedModel"](saved_model_schema_version=1)
    saved.meta_graphs.add().graph_def.CopyFrom(graph_def("pos_half"))
    unknown = b"\x2a\x03\x0a\x01x"  # a signature that we have no name for: field 5
    meta = saved.meta_graphs[0].SerializeToString() + unknown
    data = b"\x08\x01\x12" + _varint(len(meta)) + meta
    (tmp_path / "saved_model.pb").write_bytes(data)
    for model in (data, tmp_path, tmp_path / "saved_model.pb"):
        fused, findings = fuse_decode_bbox(model)
        assert findings[0].fused
        back = messages()["SavedModel"].FromString(fused)
        assert back.saved_model_schema_version == 1
        assert [node.op for node in back.meta_graphs[0].graph_def.node].count("DecodeBbox") == 1
        assert unknown in fused


def saved_model(graph: Any, signature: dict[str, list[str]], collection: str = "") -> bytes:
    """Return a SavedModel whose signature feeds and reads tensors by their names."""
    names = messages()["GraphNames"]()
    for key, listed in signature.items():
        for place, name in enumerate(listed):
            getattr(names.signature_def["serving_default"], key)[str(place)].name = name
    if collection:
        names.collection_def["saved_model_main_op"].node_list.value.append(collection)
    meta = messages()["MetaGraphDef"](graph_def=graph).SerializeToString() + names.SerializeToString()
    return bytes(b"\x08\x01\x12" + _varint(len(meta)) + meta)


SCOPE = "rpn/decode_bbox_target"


@pytest.mark.parametrize("collection", [False, True])
@pytest.mark.parametrize(("inner", "refused"), [("Reshape", False), ("Exp", True), ("Reshape_2", False)])
def test_what_a_saved_model_reads_stays(inner: str, refused: bool, collection: bool) -> None:
    graph, name = graph_def("pos_half"), f"{SCOPE}/{inner}"
    signature = {"outputs": ["boxes:0"] if collection else ["boxes:0", f"{name}:0"]}
    data, (finding,) = fuse_decode_bbox(saved_model(graph, signature, name if collection else ""))
    assert finding.fused != refused
    assert not refused or "is read outside it, by the graph's output" in finding.reason
    after = messages()["SavedModel"].FromString(data).meta_graphs[0].graph_def
    assert name in {node.name for node in after.node}


@pytest.mark.parametrize(
    ("inner", "predictions"), [("Reshape", f"{SCOPE}/Reshape:0"), ("mul_4/y", None), ("Exp", None), ("mul", None)]
)
def test_what_a_saved_model_feeds_is_no_part_of_a_decode(inner: str, predictions: str | None) -> None:
    """A signature may feed any tensor, a constant too; it has the rank that its user gives it."""
    signature = {"inputs": ["anchors:0", f"{SCOPE}/{inner}:0"], "outputs": ["boxes:0"]}
    data, findings = fuse_decode_bbox(saved_model(graph_def("pos_half"), signature))
    assert [finding.fused for finding in findings] in ([], [False])
    assert all(finding.box_predictions == predictions for finding in findings if predictions)
    after = messages()["SavedModel"].FromString(data).meta_graphs[0].graph_def
    assert after == graph_def("pos_half")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def test_unknown_fields_survive() -> None:
    data = (DATA / "pos_half.pb").read_bytes() + b"\xa2\x06\x05hello"  # field 100 of the graph
    fused, findings = fuse_decode_bbox(data)
    assert findings[0].fused
    assert b"hello" in fused


def test_unknown_rank_must_hold_for_rows_of_boxes() -> None:
    """Without shapes, an Unpack into four fits four numbers alone just as well as four rows."""
    graph = graph_def("v2_od_api_min80")
    for node in graph.node:
        if node.op == "Transpose":
            node.op = "Identity"
            del node.input[1:]
        if "shape" in node.attr:
            del node.attr["shape"]
    assert not any(finding.fused for finding in find_decode_bbox(graph.SerializeToString()))


def test_unknown_rank_is_fused_from_the_rows_on(execute: Any) -> None:
    """Boxes of (1, N, 4) against anchors of (N, 4) come out as (N, 4): the node reads what the first Reshape gives."""
    graph = graph_def("pos_concat_last_axis")
    node = next(node for node in graph.node if node.name == "box_logits")
    node.attr["shape"].shape.unknown_rank = True
    del node.attr["shape"].shape.dim[:]
    data, (finding,) = fuse_decode_bbox(graph.SerializeToString())
    assert (finding.fused, finding.box_predictions) == (True, "rpn/decode_bbox_target/Reshape:0")
    after = parse(data)
    assert sorted(node.op for node in after.node if "_rows_0" in node.name) == ["Const", "Reshape"]
    feeds, _ = golden("pos_concat_last_axis")
    for given in (feeds, feeds | {"box_logits": feeds["box_logits"][None]}):
        left, right = (execute(each, given, ["boxes"])[0] for each in (graph, after))
        np.testing.assert_array_equal(left, right)


def test_open_number_of_coordinates_is_refused() -> None:
    """2N boxes of (2N, 4) against as many numbers in anchors of (N, 8) come out as (N, 8)."""
    graph = graph_def("pos_concat_last_axis")
    next(node for node in graph.node if node.name == "anchors").attr["shape"].shape.dim[1].size = -1
    (finding,) = find_decode_bbox(graph.SerializeToString())
    assert not finding.fused
    assert "if anchors:0 has the right number of columns, which the model leaves open" in finding.reason


@pytest.mark.parametrize("name", sorted(index()))
def test_inferred_shapes_are_right(name: str) -> None:
    graph = graph_def(name)
    shapes = Shapes({node.name: node for node in graph.node})
    feeds, _ = golden(name)
    named = [node.name for node in graph.node if node.op != "NoOp"]
    known = 0
    for node, value in zip(named, interpreter.run(graph, feeds, named), strict=True):
        shape = shapes.of(f"{node}:0")
        if shape is not None:
            known += 1
            assert len(shape) == np.ndim(value), node
            assert all(dim in (None, size) for dim, size in zip(shape, np.shape(value), strict=True)), node
    assert known > 0.8 * len(named)
    assert graph == graph_def(name)


def test_shapes_of_a_region_proposal_network() -> None:
    """What a frozen graph has before its decode, as (name, operator, inputs): no shape is stated but for constants."""
    graph = messages()["GraphDef"]()
    numbers = {"zero": 0, "one": 1, "three": 3, "four": 4, "minus": -1, "begin": [0, 0, 0, 0], "rows": [-1, 4]}
    for name, value in numbers.items():
        _constant(graph, name, np.array(value, np.int32))
    _constant(graph, "all_anchors", np.zeros((9, 9, 3, 4), np.float32))
    _constant(graph, "weights", np.zeros((5, 8), np.float32))
    listed = """image Placeholder; conv Conv2D image; form Shape conv; height StridedSlice form zero one one;
        logits_form Pack height height three four; logits Reshape conv logits_form; size Pack height height minus minus;
        anchors Slice all_anchors begin size; flat Reshape anchors rows; scores Reshape conv minus_list;
        minus_list Pack minus; top TopKV2 scores three; best GatherV2 flat top:1 zero;
        kept NonMaxSuppressionV3 best scores;
        rois GatherV2 best kept zero; more ExpandDims rois one; both ConcatV2 more more one; dense MatMul rois weights;
        bounded ClipByValue rois four four; loop_a Relu loop_b; loop_b Relu loop_a; strange Unheard image"""
    for line in listed.split(";"):
        name, op, *inputs = line.split()
        graph.node.add(name=name, op=op, input=inputs)
    graph.node[-len(listed.split(";")) + 3].attr["shrink_axis_mask"].i = 1
    before = graph.SerializeToString(deterministic=True)
    shapes = Shapes({node.name: node for node in graph.node})
    expected = {
        "image": None,
        "logits": (None, None, 3, 4),
        "anchors": (None, None, 3, 4),
        "flat": (None, 4),
        "top:1": (None,),
        "best": (None, 4),
        "rois": (None, 4),
        "both": (None, 2, 4),
        "dense": (None, 8),
        "bounded": (None, 4),
        "loop_a": None,
        "strange": None,
    }
    assert {name: shapes.of(name) for name in expected} == expected
    assert graph.SerializeToString(deterministic=True) == before


def test_control_inputs_move_to_the_new_node() -> None:
    graph = graph_def("pos_half")
    graph.node.add(name="ready", op="NoOp")
    next(node for node in graph.node if node.op == "Exp").input.append("^ready")
    fused, findings = fuse_decode_bbox(graph.SerializeToString())
    assert findings[0].fused
    made = next(node for node in parse(fused).node if node.op == "DecodeBbox")
    assert list(made.input) == ["box_logits", "anchors", "^ready"]


def test_function_of_another_meaning_is_not_overwritten() -> None:
    graph = graph_def("pos_half")
    graph.library.function.add().signature.name = "DecodeBbox"
    _, findings = fuse_decode_bbox(graph.SerializeToString())
    assert not findings[0].fused
    assert "another function DecodeBbox" in findings[0].reason


VARIATIONS: dict[str, Any] = {}


def variation(change: Any) -> Any:
    VARIATIONS[change.__name__] = change
    return change


def _node(graph: Any, op: str, number: int = 0) -> Any:
    return [node for node in graph.node if node.op == op][number]


def _constant(graph: Any, name: str, value: Any) -> None:
    node = graph.node.add(name=name, op="Const")
    node.attr["dtype"].type = {np.dtype(np.float32): 1, np.dtype(np.int32): 3}[value.dtype]
    node.attr["value"].tensor.dtype = node.attr["dtype"].type
    node.attr["value"].tensor.tensor_shape.SetInParent()
    for size in value.shape:
        node.attr["value"].tensor.tensor_shape.dim.add(size=size)
    node.attr["value"].tensor.tensor_content = value.tobytes()


@variation
def split_with_sizes(graph: Any) -> None:
    _constant(graph, "sizes", np.array([1, 1], np.int32))
    node = _node(graph, "Split")
    axis, value = node.input
    node.op = "SplitV"
    node.input[:] = [value, "sizes", axis]
    node.attr["Tlen"].type = 3


@variation
def clip_by_value(graph: Any) -> None:
    _constant(graph, "least", np.array(np.finfo(np.float32).min, np.float32))
    node = _node(graph, "Minimum")
    node.op = "ClipByValue"
    node.input[:] = [node.input[0], "least", node.input[1]]


@variation
def commuted(graph: Any) -> None:
    for op in ("AddV2", "Mul", "Minimum"):
        node = _node(graph, op)
        node.input[:] = [node.input[1], node.input[0]]


@variation
def identity_inside(graph: Any) -> None:
    node = _node(graph, "Exp")
    graph.node.add(name="rpn/decode_bbox_target/same", op="Identity").input.append(node.input[0])
    graph.node[-1].attr["T"].type = 1
    node.input[0] = "rpn/decode_bbox_target/same"


@variation
def negative_split_axis(graph: Any) -> None:
    _constant(graph, "minus_two", np.array(-2, np.int32))
    _node(graph, "Split").input[0] = "minus_two"


@variation
def shuffled_file_order(graph: Any) -> None:
    nodes = list(graph.node)[::-1]
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


@variation
def no_scopes(graph: Any) -> None:
    for node in graph.node:
        node.name = node.name.replace("/", "_")
        node.input[:] = [name.replace("/", "_") for name in node.input]


@variation
def shapes_that_follow_from_the_operators(graph: Any) -> None:
    """Nothing is said of the inputs, and a Reshape makes rows of four of each."""
    _constant(graph, "four", np.array(4, np.int32))
    _constant(graph, "any", np.array(-1, np.int32))
    form = graph.node.add(name="form", op="Pack", input=["any", "four"])
    form.attr["N"].i = 2
    for node in list(graph.node):
        if node.op == "Placeholder":
            del node.attr["shape"]
            for reader in graph.node:
                reader.input[:] = [f"{node.name}_rows" if name == node.name else name for name in reader.input]
            rows = graph.node.add(name=f"{node.name}_rows", op="Reshape", input=[node.name, "form"])
            rows.attr["T"].type = node.attr["dtype"].type


@pytest.mark.parametrize("name", sorted(VARIATIONS))
def test_harmless_variation_is_fused(name: str) -> None:
    graph = graph_def("pos_concat_last_axis")
    VARIATIONS[name](graph)
    fused, findings = fuse_decode_bbox(graph.SerializeToString())
    assert [(finding.fused, finding.reason) for finding in findings] == [(True, "")]
    feeds, _ = golden("pos_concat_last_axis")
    (left,), (right,) = interpreter.run(graph, feeds, ["boxes"]), interpreter.run(parse(fused), feeds, ["boxes"])
    np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("ports", [(0, 1), (1, 0)])
def test_ports_of_a_split_are_told_apart(ports: tuple[int, int]) -> None:
    graph = graph_def("pos_concat_last_axis")
    node = _node(graph, "Sub")
    split = node.input[1].partition(":")[0]
    node.input[:] = [f"{split}:{port}" for port in ports]
    (finding,) = find_decode_bbox(graph.SerializeToString())
    assert finding.fused == (ports == (1, 0))
