"""The numbers by which kernels know options: what an option's words are to Cython, Numba, CUDA and the native library.

``setup.py`` turns every class into a C constant of the same name and members, so that ``Reduction.ADD`` reads alike in
all of them. This module therefore imports nothing but the standard library.
"""

from collections.abc import Iterable
from enum import IntEnum


class RoiMode(IntEnum):
    """How a bin of roi_align combines its samples."""

    AVG = 0
    MAX = 1
    # The largest product of an element and its bilinear weight.
    CORNER_MAX = 2


class GridMode(IntEnum):
    """How grid_sample interpolates: the number of elements, taps, that it weighs along each axis."""

    LINEAR = 2
    NEAREST = 1
    CUBIC = 4
    BILINEAR = 2
    BICUBIC = 4


class Border(IntEnum):
    """How grid_sample reads positions beyond the ends of an axis."""

    ZEROS = 0
    # The end's own element, repeated.
    BORDER = 1
    REFLECTION = 2
    # Reflection of the position before its nearest element is chosen.
    REFLECT_FIRST = 3


class Reduction(IntEnum):
    """How an update of scatter_nd joins what is there."""

    NONE = 0
    ADD = 1
    MUL = 2
    MIN = 3
    MAX = 4


class BoxForm(IntEnum):
    """The form in which non-maximum suppression takes the four numbers of a box."""

    CORNERS = 0
    CORNERS_IN_ANY_ORDER = 1
    CENTER_AND_SIZE = 2


class AnchorForm(IntEnum):
    """The form in which decode_bbox and encode_bbox take the four numbers of an anchor."""

    CORNER = 0
    # (cx, cy, w, h).
    CENTER = 1


class BoxIouMode(IntEnum):
    """What box_iou says of two boxes: its docstring has the definitions."""

    IOU = 0
    IOF = 1
    GIOU = 2
    DIOU = 3
    CIOU = 4


class SoftNmsMethod(IntEnum):
    """How soft_nms lowers the score of a box by its overlap with one that was taken: its docstring has the formulas."""

    NAIVE = 0
    LINEAR = 1
    GAUSSIAN = 2


# What says how far boxes are apart that share nothing.
OF_DISTANCE = (BoxIouMode.GIOU, BoxIouMode.DIOU, BoxIouMode.CIOU)

CODES = (RoiMode, GridMode, Border, Reduction, BoxForm, AnchorForm, BoxIouMode, SoftNmsMethod)


def words(codes: type[IntEnum], without: Iterable[IntEnum] = ()) -> dict[str, int]:
    """Return the words of an option as users write them, and what they are to kernels: plain numbers, for compilers."""
    return {name.lower(): code.value for name, code in codes.__members__.items() if code not in without}


def as_cython() -> str:
    """Return Cython text that declares the classes as C constants."""
    return "\n".join(_declaration(codes) for codes in CODES)


def _declaration(codes: type[IntEnum]) -> str:
    kind = f"detops_{codes.__name__}"
    names = [*codes.__members__]
    values = ", ".join(str(code.value) for code in codes.__members__.values())
    return "\n".join(
        [
            "cdef extern from *:",
            '    """',
            f"    static const struct {kind} {{ int {', '.join(names)}; }} {codes.__name__} = {{{values}}};",
            '    """',
            f"    struct {kind}:",
            *(f"        int {name}" for name in names),
            f"    const {kind} {codes.__name__}",
            "",
        ]
    )
