"""The commands `detops inspect` and `detops fuse`: `add_parsers` hangs them into an argparse tree.

Each sets the default `run`, a function of the parsed arguments that returns the exit code: 0 done, 1 the answer is no.
Bad input raises ValueError, OSError or ImportError, which the command line turns into one line and exit code 2.
"""

from __future__ import annotations

import argparse
import json
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from detops._extras import need
from detops._files import check_writable, written_in_one_step

DONE, NO = 0, 1


def add_parsers(subparsers: Any) -> None:
    """Add the parsers of both commands to what `ArgumentParser.add_subparsers` returned."""
    inspect = subparsers.add_parser(
        "inspect",
        help="list what a model holds: its box decodes, and why those that cannot be fused cannot",
        description="Report on an ONNX model, a TensorFlow GraphDef or a SavedModel with a frozen graph.",
    )
    inspect.add_argument("model", metavar="MODEL", help="path of the model")
    inspect.add_argument(
        "--json", action="store_true", help="print JSON, with the nodes that a quantizer must leave alone"
    )
    inspect.set_defaults(run=run_inspect)
    fuse = subparsers.add_parser(
        "fuse",
        help="replace each box decode of a model by one DecodeBbox node",
        description="Write the fused model; exit with 1, and write nothing, where there is nothing to fuse.",
    )
    fuse.add_argument("model", metavar="MODEL", help="path of the model")
    fuse.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        required=True,
        help="path of the fused model (of a folder for a SavedModel's folder)",
    )
    fuse.set_defaults(run=run_fuse)


def run_inspect(arguments: argparse.Namespace) -> int:
    """Print the report on a model; return the exit code."""
    from detops.cli.decodes import decode_section
    from detops.cli.operators import operators_section, runtime_section

    made = [maker(arguments.model) for maker in (decode_section, operators_section, runtime_section)]
    found = [section for section in made if section is not None]
    if arguments.json:
        document = {"model": arguments.model} | {section.key: section.data for section in found}
        print(json.dumps(document, indent=2))
    else:
        console = _console()
        for section in found:
            console.print(section.render())
    return DONE if all(section.good for section in found) else NO


def run_fuse(arguments: argparse.Namespace) -> int:
    """Write the fused model and say what changed; return the exit code."""
    from detops.cli import decodes
    from detops.graph import _saved_model
    from detops.graph._api import rewrite, search
    from detops.graph.model import _external
    from detops.graph.model._load import load

    output, source = Path(arguments.output), Path(arguments.model)
    folder = source.parent
    if source.is_dir():
        _saved_model.check_target(source, output)
    else:
        check_writable(output, "output")
    loaded = load(arguments.model)
    if loaded.dialect == "onnx":
        _external.check(loaded.proto, folder)
    before = sum(len(graph.nodes) for graph in loaded.graphs)
    results = search(loaded)
    findings = [result.finding for result in results]
    fused = [finding for finding in findings if finding.fused]
    if not fused:
        reasons = "; ".join(dict.fromkeys(finding.reason for finding in findings))
        print(f"nothing to fuse in {arguments.model}" + (f": {reasons}" if reasons else ""))
        return NO
    console = _console()
    proto = rewrite(loaded, results)
    if source.is_dir():
        _saved_model.write(loaded.restore(proto), source, output)
    else:
        moves = loaded.dialect == "onnx" and folder.resolve() != output.parent.resolve()
        with (
            _external.brought(proto, folder, output) if moves else nullcontext(),
            written_in_one_step(output) as file,
        ):
            file.write(loaded.restore(proto))
    after = sum(len(graph.nodes) for graph in loaded.reread(proto))
    console.print(decodes.decode_table(findings))
    print(f"{arguments.output}: fused {len(fused)} of {len(findings)}, {before} nodes before, {after} after")
    return DONE


def _console() -> Any:
    console = need("rich.console", "cli", "printing tables (--json prints none)").Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = 160  # a file has room for names
    return console
