"""The box decodes of a model, as a section of what `detops inspect` prints: a table for people, and JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from detops.graph._api import find_decode_bbox
from detops.graph._finding import Finding

if TYPE_CHECKING:
    from rich.console import RenderableType


FORMS = {
    "ltrb": "distances to left, top, right, bottom",
    "dfl": "distances to left, top, right, bottom, by distribution",
    "tblr": "distances to top, bottom, left, right",
    "cxcywh": "center and size",
    "yolo": "center in a grid, and size",
}


@dataclass(frozen=True)
class Section:
    """One part of a report.

    Attributes
    ----------
    key : str
        The section's key in the JSON object.
    data : object
        Its value there, of JSON types only.
    render : callable
        Returns what rich prints for people.
    good : bool
        Whether the answer is yes; `detops inspect` exits with 1 where a section's is no.
    """

    key: str
    data: Any
    render: Callable[[], RenderableType]
    good: bool = True


def decode_section(path: str) -> Section:
    """Return the section on box decodes: what can be fused, and why the rest cannot."""
    findings = find_decode_bbox(path)
    data = {
        "decodes": [finding.to_dict() for finding in findings],
        "leave_alone": leave_alone(findings),
    }
    return Section("box_decodes", data, lambda: decode_table(findings))


def leave_alone(findings: Sequence[Finding]) -> list[str]:
    """Return the nodes that a quantizer must leave alone: all that take part in a decode that is proved, or named."""
    return list(dict.fromkeys(node for finding in findings if finding.fused or finding.form for node in finding.nodes))


def form(finding: Finding) -> str:
    """Describe the form of a decode in a few words."""
    if finding.operator is None:
        return FORMS.get(finding.form, "not proved")
    axis = "last axis" if finding.axis == -1 else f"axis {finding.axis}"
    return f"{finding.operator}, {axis}" + (f", {finding.classes} classes" if finding.classes != 1 else "")


def decode_table(findings: Sequence[Finding]) -> RenderableType:
    """Return the findings as a table that a person can read."""
    from rich.table import Table
    from rich.text import Text

    if not findings:
        return Text("Box decodes: none found.")
    table = Table(title="Box decodes", title_justify="left", show_lines=True)
    for head in ("scope, or output", "the decode as a node", "can be fused, or why not"):
        table.add_column(head, overflow="fold")  # no cell is cut: what has no room goes on in the next line
    for finding in findings:
        verdict = Text("yes", style="green") if finding.fused else Text(finding.reason, style="yellow")
        where = Text(finding.scope or finding.decoded_boxes or "?")
        table.add_row(
            where, "\n".join((form(finding), *_anchors(finding), *_clip(finding), *_scales(finding))), verdict
        )
    return table


def _anchors(finding: Finding) -> list[str]:
    words = ["anchors by center and size"] if finding.anchor_form == "center" else []
    if finding.offset:
        words.append(f"offset {finding.offset}: widths count pixels")
    if any(finding.added):
        words.append(f"of anchors + ({', '.join(f'{number:g}' for number in finding.added)})")
    return words


def _clip(finding: Finding) -> list[str]:
    if finding.operator is None or (finding.decode_clip is None and finding.lower_clip is None):
        return []
    upper = "infinity" if finding.decode_clip is None else f"{finding.decode_clip:.6g}"
    return [f"tw, th up to {upper}" if finding.lower_clip is None else f"tw, th {finding.lower_clip:.6g} to {upper}"]


def _scales(finding: Finding) -> list[str]:
    if finding.operator is None:
        return []
    scales = "scales " + ", ".join(f"{scale:.6g}" for scale in finding.scales) if set(finding.scales) != {1.0} else ""
    means = "means " + ", ".join(f"{mean:.6g}" for mean in finding.means) if any(finding.means) else ""
    return [part for part in (scales, means) if part]
