"""The subset of Python that ``_core`` is written in, as a checker of source text.

Four compilers must read one meaning from a line. The checker gives every expression a type (real, element, index,
truth, or a tuple of them) and says where the meaning could depend on the compiler.
"""

import ast
import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path

import detops._core
from detops._codes import CODES

# Sources are the repository's: what is installed holds no .pxi.
FOLDER = Path(__file__).parents[2] / "src" / "detops" / "_core"
DECORATORS = ("cython.cfunc", "cython.inline", "cython.nogil", "cython.exceptval(check=False)")
TYPES = {"real": "real", "element": "element", "cython.Py_ssize_t": "index", "cython.bint": "truth"}
WHOLE = ("index", "truth")
MAX_LINES = 25
# PEP 263: Python, and Cython for an included file, would take such a line for the name of an encoding.
CODING = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
# What scalar.pxi declares: the types of the functions of _core/scalar.py.
DECLARED = re.compile(r"^ *(?:cdef inline )?(real|Py_ssize_t) (\w+)(?: \"\w+\")? ?\(([^)]*)\)", re.MULTILINE)
SCALAR_PXI = FOLDER.parent / "_cython" / "scalar.pxi"

# Options by the names of their codes: constants to all compilers.
MEMBERS = {codes.__name__: codes.__members__ for codes in CODES}

Type = str | tuple[str, ...]


@dataclass
class Signature:
    """Types of a function's arguments, and of its result."""

    arguments: list[Type]
    result: Type


def annotated(node: ast.expr | None) -> Type | None:
    """The type that an annotation names; None for any other annotation."""
    if node is None:
        return None
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "tuple" and isinstance(node.slice, ast.Tuple):
        parts = [TYPES.get(ast.unparse(part)) for part in node.slice.elts]
        return None if None in parts else tuple(part for part in parts if part)
    return TYPES.get(ast.unparse(node))


def signatures(sources: dict[str, str]) -> dict[str, Signature]:
    """Signatures of all functions of these core files, and of the scalar functions."""
    kinds = {"real": "real", "element": "element", "Py_ssize_t": "index"}
    found = {
        name: Signature([kinds[argument.split()[0]] for argument in arguments.split(",")], kinds[result])
        for result, name, arguments in DECLARED.findall(SCALAR_PXI.read_text())
        if name != "typed"
    }
    for source in sources.values():
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                arguments = [annotated(argument.annotation) or "unknown" for argument in node.args.args]
                found[node.name] = Signature(arguments, annotated(node.returns) or "unknown")
    return found


def core_sources() -> dict[str, str]:
    """Name and text of every core file."""
    return {name: (FOLDER / f"{name}.py").read_text() for name in detops._core.MODULES}


def faults(source: str, known: dict[str, Signature] | None = None) -> list[str]:
    """What in a core file is outside the subset, a line each."""
    found = []
    for number, line in enumerate(source.splitlines()[:2], 1):
        if CODING.match(line):
            found.append(f"{number}: reads as a coding declaration")
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found += Function(node, known or signatures({"": source})).faults
        elif isinstance(node, ast.ImportFrom) and node.module == "__future__":
            found.append(f"{node.lineno}: no 'from __future__'")
        elif not (_imports_cython(node) or _imports_core(node)):
            found.append(f"{node.lineno}: a core file holds its imports and functions, nothing else")
    return found


def _imports_cython(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and ast.unparse(node) == "import cython"


def _imports_core(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.If)
        and ast.unparse(node.test) == "not cython.compiled"
        and not node.orelse
        and all(isinstance(s, ast.ImportFrom) and _is_shared(str(s.module)) for s in node.body)
    )


def _is_shared(module: str) -> bool:
    return module == "detops._codes" or module.startswith("detops._core.")


@dataclass
class Function:
    """Checks one function; ``faults`` says what it found."""

    node: ast.FunctionDef
    known: dict[str, Signature]
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        node = self.node
        if [ast.unparse(decorator) for decorator in node.decorator_list] != list(DECORATORS):
            self.fault(node, f"the decorators of {node.name} are not {', '.join(DECORATORS)}")
        if (node.end_lineno or 0) - node.lineno + 1 > MAX_LINES:
            self.fault(node, f"{node.name} has more than {MAX_LINES} lines")
        if not ast.get_docstring(node):
            self.fault(node, f"{node.name} has no docstring")
        plain = ast.arguments([], node.args.args, None, [], [], None, [])
        if ast.unparse(plain) != ast.unparse(node.args):
            self.fault(node, f"{node.name} takes more than plain arguments")
        self.variables = {argument.arg: self.annotation(argument, argument.annotation) for argument in node.args.args}
        self.result = self.annotation(node, node.returns)
        body = node.body[1:] if ast.get_docstring(node) else node.body
        for statement in body:
            self.statement(statement)

    def fault(self, node: ast.AST, text: str) -> str:
        self.faults.append(f"{getattr(node, 'lineno', 0)}: {text}")
        return "unknown"

    def annotation(self, node: ast.AST, annotation: ast.expr | None) -> Type:
        return annotated(annotation) or self.fault(node, "needs an annotation: " + ", ".join(TYPES))

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)):
                self.variables[name] = self.annotation(node, node.annotation)
                if node.value is not None:
                    self.fits(node, self.variables[name], self.type(node.value))
            case ast.Assign(targets=[target]):
                self.fits(node, self.target(target), self.type(node.value))
            case ast.AugAssign():
                self.fits(node, self.target(node.target), self.arithmetic(node, node.op, node.target, node.value))
            case ast.If():
                self.condition(node.test)
                for inner in (*node.body, *node.orelse):
                    self.statement(inner)
            case ast.Return(value=ast.expr() as value):
                self.fits(node, self.result, self.type(value))
            case ast.For() | ast.While():
                self.fault(node, "no loops: they belong to the kernels")
            case _:
                self.fault(node, f"no {type(node).__name__} statement")

    def target(self, node: ast.expr) -> Type:
        if isinstance(node, ast.Tuple):
            return tuple(str(self.target(part)) for part in node.elts)
        if isinstance(node, ast.Name) and node.id in self.variables:
            return self.variables[node.id]
        return self.fault(node, f"{ast.unparse(node)} is not an annotated local variable")

    def fits(self, node: ast.AST, wanted: Type, got: Type) -> None:
        if isinstance(wanted, tuple) and isinstance(got, tuple) and len(wanted) == len(got):
            for one, other in zip(wanted, got, strict=True):
                self.fits(node, one, other)
        elif not (wanted == got or (wanted in WHOLE and got in WHOLE) or "unknown" in (wanted, got)):
            self.fault(node, f"{got} where {wanted} is meant: use typed() or int()")

    def condition(self, node: ast.expr) -> None:
        match node:
            case ast.BoolOp():
                for value in node.values:
                    self.condition(value)
            case ast.UnaryOp(op=ast.Not()):
                self.condition(node.operand)
            case _ if self.type(node) not in (*WHOLE, "unknown"):
                self.fault(node, "a condition is a comparison or a whole number")

    def type(self, node: ast.expr) -> Type:
        match node:
            case ast.Name(id=name):
                return self.variables.get(name) or self.fault(node, f"{name} is not an annotated local variable")
            case ast.Attribute(value=ast.Name(id=codes), attr=name) if name in MEMBERS.get(codes, ()):
                return "index"
            case ast.Constant(value=bool()):
                return "truth"
            case ast.Constant(value=int()):
                return "index"
            case ast.Constant(value=float()):
                return self.fault(node, f"bare float constant {node.value}: use typed()")
            case ast.Tuple():
                return tuple(str(self.type(part)) for part in node.elts)
            case ast.BinOp():
                return self.arithmetic(node, node.op, node.left, node.right)
            case ast.UnaryOp(op=ast.Not()) | ast.BoolOp():
                self.condition(node)
                return "truth"
            case ast.UnaryOp(op=ast.USub()):
                return self.type(node.operand)
            case ast.Compare():
                sides = [node.left, *node.comparators]
                for left, right in itertools.pairwise(sides):
                    self.fits(node, self.type(left), self.type(right))
                return "truth"
            case ast.IfExp():
                self.condition(node.test)
                first, second = self.type(node.body), self.type(node.orelse)
                self.fits(node, first, second)
                return first
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                return self.call(node, name)
        return self.fault(node, f"no {type(node).__name__} expression: {ast.unparse(node)}")

    def arithmetic(self, node: ast.AST, op: ast.operator, left: ast.expr, right: ast.expr) -> Type:
        kinds = self.type(left), self.type(right)
        if isinstance(op, ast.FloorDiv | ast.Mod | ast.Pow | ast.MatMult):
            return self.fault(node, f"no {type(op).__name__}: it differs between Python and C")
        if "unknown" in kinds:
            return "unknown"
        if all(kind in WHOLE for kind in kinds):
            return self.fault(node, "whole / whole is float64") if isinstance(op, ast.Div) else "index"
        if kinds[0] != kinds[1] or isinstance(kinds[0], tuple):
            return self.fault(node, f"{kinds[0]} meets {kinds[1]}: use typed()")
        if not isinstance(op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            return self.fault(node, f"no {type(op).__name__} on {kinds[0]}")
        return kinds[0]

    def call(self, node: ast.Call, name: str) -> Type:
        if name == "typed" and len(node.args) == 2:
            value, like = node.args
            if not _is_constant(value):
                self.type(value)
            kind = self.type(like)
            return kind if kind in ("real", "element", "unknown") else self.fault(node, f"typed() like {kind}")
        kinds = [self.type(argument) for argument in node.args]
        if name == "int" and len(kinds) == 1:
            return "index"
        if name in ("min", "max", "abs"):
            whole = all(kind in WHOLE for kind in kinds)
            return "index" if whole else self.fault(node, f"no {name}() on {kinds[0]}: write the comparison")
        if name not in self.known:
            return self.fault(node, f"{name} is no function of the core")
        wanted = self.known[name]
        if len(wanted.arguments) != len(kinds):
            return self.fault(node, f"{name} takes {len(wanted.arguments)} arguments")
        for one, other in zip(wanted.arguments, kinds, strict=True):
            self.fits(node, one, other)
        return wanted.result


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
