"""PTX of a kernel, as C that runs it thread by thread on the CPU.

Only what our kernels hold is known: no barriers, no shared memory, no calls. Anything else is a NotImplementedError
that names the instruction. A register is an unsigned integer of its width that holds bits; an instruction reads them as
its own type, so that a float's bits may pass through an integer register as they do on a GPU.
"""

import re
from collections.abc import Iterator

# The C type of each PTX type; those of untyped bits are unsigned.
_C = {"f32": "float", "f64": "double", "pred": "uint8_t"} | {
    f"{kind}{bits}": f"{'' if kind == 's' else 'u'}int{bits}_t" for kind in "sub" for bits in (8, 16, 32, 64)
}
_C["f16"] = "uint16_t"

_HEAD = r"""
#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define BITS(NAME, REAL, WORD) \
    static inline REAL NAME##_of(WORD bits) { REAL value; memcpy(&value, &bits, sizeof value); return value; } \
    static inline WORD bits_of_##NAME(REAL value) { WORD bits; memcpy(&bits, &value, sizeof bits); return bits; }
BITS(f32, float, uint32_t)
BITS(f64, double, uint64_t)

/* A float that becomes an integer is held within its range, and NaN is 0 (the lowest number in 64 bits). */
#define SATURATED(NAME, TYPE, LOW, HIGH, NAN_IS) \
    static inline TYPE NAME(double x) { \
        return x != x ? NAN_IS : x >= -(double)LOW ? HIGH : x <= (double)LOW ? LOW : (TYPE)x; \
    }
SATURATED(to_s32, int32_t, INT32_MIN, INT32_MAX, 0)
SATURATED(to_s64, int64_t, INT64_MIN, INT64_MAX, INT64_MIN)
static inline uint32_t to_u32(double x) { return !(x > 0) ? 0 : x >= 4294967295.0 ? UINT32_MAX : (uint32_t)x; }
static inline uint64_t to_u64(double x) { return !(x > 0) ? 0 : x >= 0x1p64 ? UINT64_MAX : (uint64_t)x; }

static float half_to_float(uint16_t half) {
    int exponent = half >> 10 & 31, fraction = half & 1023;
    float size = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent ? ldexpf(fraction + 1024, exponent - 25) : ldexpf(fraction, -24);
    return half >> 15 ? -size : size;
}
static uint16_t float_to_half(float x) { /* to the nearest, ties to even, as rint does */
    uint16_t sign = bits_of_f32(x) >> 31 << 15;
    float size = fabsf(x);
    int exponent;
    if (x != x) return 0x7fff;
    if (size >= 65520) return sign | 0x7c00;
    if (size < 6.103515625e-05f) return sign | (uint16_t)rintf(ldexpf(size, 24));
    frexpf(size, &exponent);
    return sign | (uint16_t)(((exponent + 13) << 10) + (int)rintf(ldexpf(size, 11 - exponent)));
}
static float fma_down(float a, float b, float c) {
    int before = fegetround();
    fesetround(FE_DOWNWARD);
    volatile float result = fmaf(a, b, c);
    fesetround(before);
    return result;
}
static inline uint64_t insert_bits(uint64_t a, uint64_t b, uint32_t position, uint32_t length) {
    uint64_t mask = (length > 63 ? ~0ull : (1ull << length) - 1) << position;
    return (b & ~mask) | (a << position & mask);
}

struct thread { unsigned tid[3], ctaid[3], ntid[3], nctaid[3]; };
"""

_TAIL = r"""
void run(const unsigned grid[3], const unsigned block[3], void **parameters) {
    struct thread t;
    memcpy(t.ntid, block, sizeof t.ntid);
    memcpy(t.nctaid, grid, sizeof t.nctaid);
    for (t.ctaid[2] = 0; t.ctaid[2] < grid[2]; t.ctaid[2]++)
    for (t.ctaid[1] = 0; t.ctaid[1] < grid[1]; t.ctaid[1]++)
    for (t.ctaid[0] = 0; t.ctaid[0] < grid[0]; t.ctaid[0]++)
    for (t.tid[2] = 0; t.tid[2] < block[2]; t.tid[2]++)
    for (t.tid[1] = 0; t.tid[1] < block[1]; t.tid[1]++)
    for (t.tid[0] = 0; t.tid[0] < block[0]; t.tid[0]++)
        kernel(&t, parameters);
}
"""

_SPECIAL = re.compile(r"%(tid|ctaid|ntid|nctaid)\.([xyz])")
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_COMPARE |= {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_NOT = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_INFIX = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}
_ROUNDINGS = {"rzi": "trunc", "rmi": "floor", "rpi": "ceil", "rni": "rint"}


class Entry:
    """One kernel of a PTX text.

    Parameters
    ----------
    text : str
        The PTX of a module.
    name : str
        The kernel's entry point.
    """

    def __init__(self, text: str, name: str) -> None:
        head = re.search(rf"\.visible \.entry {re.escape(name)}\((.*?)\)[^{{]*(?={{)", text, re.S)
        if head is None:
            raise ValueError(f"no entry {name} in the PTX")
        self._parameters = re.findall(r"(\w+)\s*(?:,|$)", re.sub(r"\.\w+ ", "", head[1]))
        body = re.sub(r"//.*", "", _braced(text, head.end()))
        # What stands in braces beside an instruction is a pair of registers; other braces are scopes of names.
        body = re.sub(r"\{\s*(%\w+)\s*,\s*(%\w+)\s*\}", r"\1:\2", body)
        self._width: dict[str, str] = {}
        self._local: dict[str, str] = {}
        self._lines = [line for statement in _statements(body) for line in self._statement(statement)]

    def source(self) -> str:
        """The C text: ``run(grid, block, parameters)`` runs the kernel."""
        registers = [f"{_C[kind]} {register} = 0;" for register, kind in self._width.items()]
        body = "\n    ".join([*registers, *self._local.values(), *self._lines])
        return f"{_HEAD}\nstatic void kernel(const struct thread *t, void **parameters) {{\n    {body}\n}}\n{_TAIL}"

    def _statement(self, text: str) -> Iterator[str]:
        if text.endswith(":"):
            yield _label(text[:-1]) + ":;"
        elif text.startswith(".reg"):
            _, kind, names = text.split(None, 2)
            self._declare(kind[1:], names)
        elif found := re.match(r"\.local \.align (\d+) \.b8\s+(\w+)\[(\d+)\]", text):
            alignment, name, size = found.groups()
            self._local[name] = f"char {name}[{size}] __attribute__((aligned({alignment})));"
        elif text.startswith((".loc", ".pragma")):
            pass
        else:
            yield self._instruction(text)

    def _declare(self, kind: str, names: str) -> None:
        """Bits have the type of their width: floats too."""
        kind = kind if kind == "pred" else "b" + kind[1:]
        for name in names.replace("%", "").split(","):
            stem, _, count = name.strip().rstrip(">").partition("<")
            for register in [f"{stem}{i}" for i in range(int(count))] if count else [stem]:
                self._width[register] = kind

    def _instruction(self, text: str) -> str:
        guard, negated, text = "", "", text.strip()
        if found := re.match(r"@(!?)%(\w+)\s+(.*)", text, re.S):
            negated, register, text = found.groups()
            guard = f"if ({negated}{register}) "
        opcode, _, rest = text.partition(" " if " " in text.partition("\t")[0] else "\t")
        arguments = [one.strip() for one in rest.split(",")] if rest.strip() else []
        try:
            return f"{guard}{{ {self._operation(opcode.strip().split('.'), arguments)} }}"
        except KeyError as error:
            raise NotImplementedError(text) from error

    def _operation(self, parts: list[str], arguments: list[str]) -> str:
        name, kind = parts[0], parts[-1]
        if name == "bra":
            return f"goto {_label(arguments[0])};"
        if name == "ret":
            return "return;"
        if name == "st":
            return f"*({_C[kind]} *)({self._address(arguments[0])}) = {self._read(arguments[1], kind)};"
        if name == "mov" and ":" in "".join(arguments):
            return self._move_halves(*arguments)
        target, *sources = arguments
        if name == "setp":
            return self._write(target, "pred", self._comparison(parts[1], kind, sources))
        if name == "ld":
            pointer = self._parameter(sources[0]) if parts[1] == "param" else self._address(sources[0])
            return self._write(target, kind, f"*({_C[kind]} *)({pointer})")
        if name == "cvt":
            return self._write(target, parts[-2], self._conversion(parts, sources[0]))
        if name == "mul" and "wide" in parts:
            wide = f"{kind[0]}{2 * int(kind[1:])}"
            return self._write(
                target, wide, f"({_C[wide]}){self._read(sources[0], kind)} * {self._read(sources[1], kind)}"
            )
        return self._write(target, kind, self._arithmetic(parts, kind, sources))

    def _arithmetic(self, parts: list[str], kind: str, sources: list[str]) -> str:
        name, real = parts[0], kind in ("f32", "f64")
        suffix = "f" if kind == "f32" else ""
        if name == "selp":
            first, second = (self._read(source, kind) for source in sources[:2])
            return f"{self._read(sources[2], 'pred')} ? {first} : {second}"
        if name in ("shl", "shr"):
            return self._shift(name, kind, sources)
        if name == "bfi":
            return "insert_bits({}, {}, {}, {})".format(*(self._read(source, "u64") for source in sources))
        a, b, c = [self._read(source, kind) for source in sources] + [""] * (3 - len(sources))
        if name in _INFIX:
            return f"{a} {_INFIX[name]} {b}"
        if name in ("max", "min"):
            return f"f{name}{suffix}({a}, {b})" if real else f"{a} {'>' if name == 'max' else '<'} {b} ? {a} : {b}"
        if name in ("div", "rem") and not real:
            # A GPU gives some number for a division by zero, where a CPU stops.
            return f"{b} ? {a} {'/' if name == 'div' else '%'} {b} : ({_C[kind]})-1"
        if name == "mul" and "hi" in parts:
            wide = "__int128" if kind[0] == "s" else "unsigned __int128"
            return f"({wide}){a} * {b} >> {kind[1:]}"
        if name == "fma" and "rm" in parts:
            return f"fma_down({a}, {b}, {c})"
        return {
            "mov": a,
            "cvta": a,
            "mul": f"{a} * {b}",
            "mad": f"{a} * {b} + {c}",
            "fma": f"fma{suffix}({a}, {b}, {c})",
            "div": f"{a} / {b}",
            "not": f"!{a}" if kind == "pred" else f"~{a}",
            "neg": f"-{a}",
            "abs": f"fabs{suffix}({a})",
            "sqrt": f"sqrt{suffix}({a})",
            "rcp": f"1 / {a}",
            "ex2": f"exp2f({a})",
            "lg2": f"log2f({a})",
            "copysign": f"copysign{suffix}({b}, {a})",
        }[name]

    def _shift(self, name: str, kind: str, sources: list[str]) -> str:
        """A shift by the width or more leaves nothing but signs."""
        value, by, bits = self._read(sources[0], kind), self._read(sources[1], "u32"), int(kind[1:])
        if name == "shl":
            return f"{by} < {bits} ? {value} << {by} : 0"
        return (
            f"{value} >> ({by} < {bits} ? {by} : {bits - 1})"
            if kind[0] == "s"
            else f"{by} < {bits} ? {value} >> {by} : 0"
        )

    def _comparison(self, test: str, kind: str, sources: list[str]) -> str:
        a, b = (self._read(source, kind) for source in sources)
        if test in ("num", "nan"):
            ordered = f"({a} == {a} && {b} == {b})"
            return ordered if test == "num" else "!" + ordered
        if kind in ("f32", "f64") and test == "ne":  # false for NaN, as all ordered tests are
            return f"{a} < {b} || {a} > {b}"
        if test in _COMPARE:
            return f"{a} {_COMPARE[test]} {b}"
        # With a u at its end a test is true for NaN: the opposite of the opposite ordered one.
        if test == "equ":
            return f"!({a} < {b} || {a} > {b})"
        return f"!({a} {_COMPARE[_NOT[test.removesuffix('u')]]} {b})"

    def _conversion(self, parts: list[str], source: str) -> str:
        to, of = parts[-2:]
        value = f"half_to_float({self._read(source, of)})" if of == "f16" else self._read(source, of)
        rounding = next((function for mark, function in _ROUNDINGS.items() if mark in parts), None)
        if rounding:
            value = f"{rounding}({value})"
        if to == "f16":
            return f"float_to_half({value})"
        if of[0] == "f" and to[0] in "su":
            return f"({_C[to]})to_{to[0]}{max(32, int(to[1:]))}({value})"
        if "sat" in parts:
            return f"{value} > 0 ? ({value} < 1 ? {value} : 1) : 0"
        return value

    def _move_halves(self, target: str, source: str) -> str:
        """Between a wide register and a pair of narrow ones, low half first."""
        if ":" in target:
            low, high = target.replace("%", "").split(":")
            return f"uint64_t bits = {self._read(source, 'b64')}; {low} = bits; {high} = bits >> 32;"
        low, high = source.replace("%", "").split(":")
        return self._write(target, "b64", f"(uint64_t){low} | (uint64_t){high} << 32")

    def _read(self, operand: str, kind: str) -> str:
        """An operand as a value of a type: a register, an immediate number, a special register or a local array."""
        operand = operand.strip()
        if found := _SPECIAL.fullmatch(operand):
            return f"({_C[kind]})t->{found[1]}[{'xyz'.index(found[2])}]"
        register = operand.lstrip("%")
        if operand.startswith("%") and register in self._width:
            return f"{kind}_of({register})" if kind in ("f32", "f64") else f"({_C[kind]}){register}"
        if operand in self._local:
            return f"(uint64_t){operand}"
        if found := re.fullmatch(r"0[fF]([0-9A-Fa-f]{8})|0[dD]([0-9A-Fa-f]{16})", operand):
            return f"f32_of(0x{found[1]}u)" if found[1] else f"f64_of(0x{found[2]}ull)"
        return f"({_C[kind]}){int(operand, 0) & (1 << 64) - 1}ull"

    def _write(self, operand: str, kind: str, value: str) -> str:
        register = operand.strip().lstrip("%")
        bits = f"bits_of_{kind}({value})" if kind in ("f32", "f64") else f"({_C[kind]})({value})"
        if register not in self._width:
            raise KeyError(register)
        return f"{register} = {bits};"

    def _address(self, operand: str) -> str:
        found = re.fullmatch(r"\[\s*(%?\w+)(?:\s*\+\s*(-?\d+))?\s*\]", operand)
        assert found, operand
        return f"{self._read(found[1], 'b64')} + ({found[2] or 0})"

    def _parameter(self, operand: str) -> str:
        found = re.fullmatch(r"\[\s*(\w+)(?:\s*\+\s*(\d+))?\s*\]", operand)
        assert found, operand
        return f"(char *)parameters[{self._parameters.index(found[1])}] + {found[2] or 0}"


def _braced(text: str, start: int) -> str:
    """What stands between the brace that opens at start and the one that closes it."""
    depth = 0
    for end in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return text[start + 1 : end]
    raise ValueError("a brace is not closed")


def _statements(body: str) -> Iterator[str]:
    for part in re.split(r"[;{}]", body):
        rest = part.strip()
        while found := re.match(r"(\$?\w+):(?!:)\s*", rest):
            yield f"{found[1]}:"
            rest = rest[found.end() :]
        if rest:
            yield rest


def _label(name: str) -> str:
    return "label_" + re.sub(r"\W", "_", name)
