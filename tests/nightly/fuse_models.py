"""Fusion in whole models of torchvision, as exported and simplified: ``python tests/nightly/fuse_models.py FOLDER``.

The models (with random weights, which need no download) are written to the folder, and each is run in ONNX Runtime
before and after fusion. Simplifiers that aren't installed are left out. The table in ``docs/graph_fusion.md`` is made
of what this prints.
"""

import argparse
import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from detops.graph import fuse_decode_bbox

MODELS = (
    "fasterrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn",
    "retinanet_resnet50_fpn",
    "ssd300_vgg16",
    "ssdlite320_mobilenet_v3_large",
)
SIZE = (3, 320, 320)


def export(name: str, path: Path) -> None:
    """Write a model of torchvision with random weights."""
    import torch
    from torchvision.models import detection

    torch.manual_seed(0)
    sizes = {} if name.startswith("ssd") else {"min_size": 320, "max_size": 480}
    model = getattr(detection, name)(weights=None, weights_backbone=None, **sizes).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, ([torch.rand(SIZE)],), str(path), opset_version=17, dynamo=False, input_names=["image"]
        )


def onnxsim(source: Path, target: Path) -> None:
    """Simplify."""
    import onnxsim as simplifier

    onnx.save(simplifier.simplify(onnx.load(source))[0], target)


def onnxslim(source: Path, target: Path) -> None:
    """Simplify."""
    import onnxslim as simplifier

    with contextlib.redirect_stdout(io.StringIO()):
        simplifier.slim(str(source), str(target))


def extended(source: Path, target: Path, level: str = "ORT_ENABLE_EXTENDED") -> None:
    """Optimize, without layouts of one processor."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(target)
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def everything(source: Path, target: Path) -> None:
    """Optimize for this processor."""
    extended(source, target, "ORT_ENABLE_ALL")


WAYS: tuple[Callable[[Path, Path], None], ...] = (onnxsim, onnxslim, extended, everything)


def variants(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Write a model in all ways, and yield each with what was done to it."""
    plain = folder / f"{name}.onnx"
    if not plain.exists():
        export(name, plain)
    yield "as exported", plain
    for way in WAYS:
        target = folder / f"{name}.{way.__name__}.onnx"
        with contextlib.suppress(ImportError):
            if not target.exists():
                way(plain, target)
            yield way.__name__, target


def run(model: Any, image: Any) -> list[Any]:
    """Run a model in stock ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: image})


def same(left: list[Any], right: list[Any]) -> bool:
    """Tell whether two lists of outputs agree, as far as the order of the arithmetic lets them."""
    pairs = zip(left, right, strict=True)
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-2) for a, b in pairs)


def main() -> int:
    """Print a line for each model and way; return 1 where an output changed."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    folder = arguments.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    image = np.random.default_rng(0).random(SIZE, dtype=np.float32)
    changed = 0
    for name in MODELS:
        for way, path in variants(name, folder):
            fused, findings = fuse_decode_bbox(path)
            agree = same(run(str(path), image), run(fused, image))
            changed += not agree
            reasons = {finding.reason for finding in findings if finding.reason}
            count = sum(finding.fused for finding in findings)
            print(
                f"| {name} | {way} | {count} of {len(findings)} | {'; '.join(reasons)}{'' if agree else ' CHANGED'} |"
            )
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main())
