"""The commands `detops inspect` and `detops fuse`: `add_parsers` hangs them into an argparse tree.

Each sets the default `run`, a function of the parsed arguments that returns the exit code: 0 done, 1 the answer is no.
Bad input raises ValueError, OSError or ImportError, which the command line turns into one line and exit code 2.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from detops._extras import need
from detops._files import written_in_one_step

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
    fuse.add_argument("-o", "--output", metavar="OUT", required=True, help="path of the fused model")
    fuse.set_defaults(run=run_fuse)


def run_inspect(arguments: argparse.Namespace) -> int:
    """Print the report on a model; return the exit code."""
    from detops.graph import report
    from detops.onnx.report import operators_section

    report.add_section(operators_section)
    found = report.sections(arguments.model)
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
    from detops.graph import report
    from detops.graph._api import rewrite, search
    from detops.graph._load import load

    loaded = load(arguments.model)
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
    if loaded.dialect == "onnx":
        _bring_external_data(proto, Path(arguments.model).parent, Path(arguments.output).parent)
    with written_in_one_step(arguments.output) as file:
        file.write(loaded.restore(proto))
    after = sum(len(graph.nodes) for graph in loaded.reread(proto))
    console.print(report.decode_table(findings))
    print(f"{arguments.output}: fused {len(fused)} of {len(findings)}, {before} nodes before, {after} after")
    return DONE


def _bring_external_data(proto: Any, source: Path, target: Path) -> None:
    """Take weights in files of their own along, where the new model lies in another folder."""
    import onnx

    if source.resolve() == target.resolve():
        return
    try:
        onnx.load_external_data_for_model(proto, str(source))
    except (onnx.checker.ValidationError, FileNotFoundError) as error:
        raise ValueError(f"model: its external data cannot be read ({error})") from error


def _console() -> Any:
    return need("rich.console", "cli", "printing tables (--json prints none)").Console()
