"""Finds the regular expressions of packages, and those whose time grows faster than the text that they read.

A pattern is tried on texts made from its own tree: what can precede each repeat, what the repeat repeats, and what
ends a match. The times are those of the processor, and only their growth counts.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import _lru_cache_wrapper
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, Final

SIZES: Final = (2_048, 8_192)
ALARM_S: Final = 0.1
GROWTH: Final = 9.0
"""Growth of the time from the first to the second size, which is 4 where it is linear and 16 where it is quadratic."""
LEAST_S: Final = 0.003
SHORT_S: Final = 0.000_1
"""Times of the second and of the first size below which the growth is not measured."""
METHODS: Final = frozenset({"match", "search", "fullmatch", "finditer", "findall", "sub", "subn", "split"})
_UNKNOWN: Final = frozenset({"finditer", "fullmatch"})
"""What applies a pattern that is passed on or looked up."""
_UNBOUNDED: Final = 64
"""A repeat with at least this maximum is pumped."""
_SAMPLES: Final = 4
_TEXTS: Final = 72
_ENDS: Final = ("", "\x00", "\n", " x")


@dataclass(frozen=True, slots=True)
class Use:
    """A pattern, the module that has it, and the methods that apply it."""

    module: str
    name: str
    pattern: re.Pattern[str]
    methods: frozenset[str]

    @property
    def key(self) -> str:
        """The name that identifies it."""
        return f"{self.module}.{self.name}"


def list_uses(*packages: str) -> list[Use]:
    """List the patterns of str in `packages`: those that modules hold, and those that their code writes in a call."""
    modules = [importlib.import_module(name) for package in packages for name in _list_modules(package)]
    trees = {module: ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")) for module in modules}
    applied = {module: _find_applied(tree) for module, tree in trees.items()}
    everywhere = defaultdict[str, set[str]](set)
    for found in applied.values():
        for name, some in found.items():
            everywhere[name] |= some
    uses: dict[tuple[str, int, frozenset[str]], Use] = {}
    for module, tree in trees.items():
        held = list(_find_held(module))
        for name, pattern in held:
            word = re.split(r"[.\[]", name)[0]
            methods = frozenset((applied[module] if word.startswith("_") else everywhere).get(word) or _UNKNOWN)
            uses.setdefault((pattern.pattern, pattern.flags, methods), Use(module.__name__, name, pattern, methods))
        known = {pattern for _, pattern in held}
        for pattern, method in _find_inline(module, tree):
            if method != "compile" or pattern not in known:
                methods = frozenset({method}) if method in METHODS else _UNKNOWN
                name = pattern.pattern[:60]
                uses.setdefault((pattern.pattern, pattern.flags, methods), Use(module.__name__, name, pattern, methods))
    return list(uses.values())


def _list_modules(package: str) -> Iterator[str]:
    yield package
    found = importlib.import_module(package)
    for each in pkgutil.walk_packages(found.__path__, f"{package}."):
        if not each.name.endswith(".__main__"):
            yield each.name


def _find_applied(tree: ast.Module) -> dict[str, set[str]]:
    """Find the methods that a module applies to what it names, also by a local name for it."""
    nodes = list(ast.walk(tree))
    uses = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in METHODS]
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    aliases: list[tuple[ast.stmt | ast.expr, ast.expr, ast.expr]] = []
    """Names, or patterns of names, and the values that they stand for in a part of the module."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id=called), args=values) if called in functions:
                inside = functions[called]
                names = [ast.Name(each.arg) for each in (*inside.args.posonlyargs, *inside.args.args)]
                aliases += [(inside, name, value) for name, value in zip(names, values, strict=False)]
            case ast.For(target=target, iter=value):
                aliases.append((node, target, value))
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                aliases += [(node, each.target, each.iter) for each in node.generators]
            case ast.Assign(targets=[target], value=value) | ast.NamedExpr(target=target, value=value):
                around = [each for each in functions.values() if _is_within(node, each)]
                aliases += [(each, target, value) for each in around]
    found = defaultdict[str, set[str]](set)
    for use in uses:
        for name in _originals(use.value):
            found[name].add(use.attr)
    local = [use for use in uses if isinstance(use.value, ast.Name)]
    for scope, target, value in aliases:
        if originals := [name for name in _originals(value) if name.lstrip("_").isupper()]:
            called = set(_names(target))
            methods = {use.attr for use in local if _is_within(use, scope) and called.intersection(_names(use.value))}
            for name in originals:
                found[name] |= methods
    return found


def _is_within(node: ast.stmt | ast.expr, scope: ast.stmt | ast.expr) -> bool:
    return scope.lineno <= node.lineno <= (scope.end_lineno or scope.lineno)


def _originals(value: ast.expr) -> Iterator[str]:
    """Yield the names of the patterns, or of their containers, that an expression may stand for."""
    match value:
        case ast.Name(id=name):
            yield name
        case ast.Subscript(value=inner) | ast.Attribute(value=inner):
            yield from _originals(inner)
        case ast.IfExp(body=one, orelse=other):
            yield from _originals(one)
            yield from _originals(other)
        case ast.BoolOp(values=several) | ast.Tuple(elts=several) | ast.List(elts=several):
            for each in several:
                yield from _originals(each)
        case ast.Call(func=ast.Attribute(value=inner, attr="get" | "items" | "values")):
            yield from _originals(inner)
        case ast.Call(func=ast.Name() as inner):
            yield from _originals(inner)
        case _:
            return


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names by which an expression may refer to a pattern."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


def _find_held(module: ModuleType) -> Iterator[tuple[str, re.Pattern[str]]]:
    for name, value in vars(module).items():
        if name.startswith("__") or isinstance(value, ModuleType):
            continue
        if isinstance(value, _lru_cache_wrapper) and value.__module__ == module.__name__:
            signature = inspect.signature(value)
            if "Pattern" in str(signature.return_annotation) and not signature.parameters:
                yield from _unpack(name, value(), 0)
        if isinstance(value, type):
            if value.__module__ == module.__name__:
                for own, held in vars(value).items():
                    yield from _unpack(f"{own}", held, 3)
        else:
            yield from _unpack(name, value, 0)


def _unpack(name: str, value: object, depth: int) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield name, value
    elif depth > 3:
        return
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _unpack(f"{name}[{key!r}]"[:80], each, depth + 1)
            yield from _unpack(f"{name}[{key!r}]"[:80], key, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for number, each in enumerate(value):
            yield from _unpack(f"{name}[{number}]", each, depth + 1)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _unpack(f"{name}.{field.name}", getattr(value, field.name, None), depth + 1)


def _find_inline(module: ModuleType, tree: ast.Module) -> Iterator[tuple[re.Pattern[str], str]]:
    """Find the calls such as ``re.sub(r"...", ...)`` within functions; the module holds the patterns of others."""
    parts = [part for part in tree.body if isinstance(part, ast.FunctionDef | ast.ClassDef)]
    for node in (node for part in parts for node in ast.walk(part)):
        if not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and (node.func.attr in METHODS or node.func.attr == "compile")
            and node.args
        ):
            continue
        flags = [word.value for word in node.keywords if word.arg == "flags"]
        position = {"compile": 1, "split": 3, "sub": 4, "subn": 4}.get(node.func.attr, 2)
        flags += node.args[position : position + 1]
        text = _evaluate(node.args[0], module)
        if isinstance(text, str):
            given = _evaluate(flags[0], module) if flags else 0
            try:
                yield re.compile(text, given if isinstance(given, int) else 0), node.func.attr
            except re.error:
                continue  # a name stood for something that is no pattern


def _evaluate(node: ast.expr, module: ModuleType) -> object:
    """Evaluate an expression in a module. Names that only a function knows become a word."""
    if isinstance(node, ast.JoinedStr):
        parts = []
        for each in node.values:
            value = _evaluate(each.value, module) if isinstance(each, ast.FormattedValue) else _evaluate(each, module)
            parts.append(value if isinstance(value, str) else str(value) if isinstance(value, int) else "word")
        return "".join(parts)
    try:
        return eval(compile(ast.Expression(node), "pattern", "eval"), vars(module))  # noqa: S307 -- our own code
    except Exception:  # noqa: BLE001 -- any expression of ours may fail outside of its function
        return None


# -- Texts ---------------------------------------------------------------------------------------------------------


def build_texts(pattern: re.Pattern[str]) -> list[tuple[str, str, str]]:
    """Build triples of what comes before, what is repeated, and what ends a text, from the tree of a pattern."""
    tree = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    triples: dict[tuple[str, str], None] = {}
    for before, pump in _find_pumps(list(tree), [""]):
        if pump:
            triples.setdefault((before, pump))
    whole = _samples(list(tree))
    pumps = list(triples)
    for text in whole[:2]:
        for cut in {len(text), max(1, len(text) - 1), max(1, len(text) // 2)}:
            if text[:cut]:
                pumps.append(("", text[:cut]))
    found = [(before, pump, end) for before, pump in pumps for end in _ENDS]
    return found[:: -(-len(found) // _TEXTS) or 1]


def _find_pumps(items: list[Any], before: list[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of what precedes a repeat and what it repeats, for all repeats within."""
    for position, (kind, argument) in enumerate(items):
        if kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            _, most, body = argument
            bodies = _samples(list(body))
            if most is _constants.MAXREPEAT or most >= _UNBOUNDED:
                # What comes next may begin with what is repeated, or the two may be repeated together.
                for pump in [*bodies, *_samples(list(items[position + 1 : position + 2]))[:1]]:
                    for start in before[:2]:
                        yield start, pump
                        if start:
                            yield "", start + pump
                            yield "", start
            yield from _find_pumps(list(body), before)
        elif kind is _constants.SUBPATTERN:
            yield from _find_pumps(list(argument[-1]), before)
        elif kind is _constants.ATOMIC_GROUP:
            yield from _find_pumps(list(argument), before)
        elif kind in (_constants.ASSERT, _constants.ASSERT_NOT):
            yield from _find_pumps(list(argument[1]), before)
        elif kind is _constants.BRANCH:
            for branch in argument[1]:
                yield from _find_pumps(list(branch), before)
        before = [start + text for start in before for text in _samples([(kind, argument)])[:2]][:_SAMPLES]


def _samples(items: list[Any]) -> list[str]:
    """Return up to `_SAMPLES` short texts that a sequence matches, without its conditions."""
    texts = [""]
    for kind, argument in items:
        parts = _sample(kind, argument)
        longest = max(len(texts), len(parts))
        pairs = zip(
            itertools.islice(itertools.cycle(texts), longest),
            itertools.islice(itertools.cycle(parts), longest),
            strict=True,
        )
        texts = list(dict.fromkeys(text + part for text, part in pairs))[:_SAMPLES]
    return texts


def _sample(kind: Any, argument: Any) -> list[str]:
    match kind:
        case _constants.LITERAL:
            return [chr(argument)]
        case _constants.NOT_LITERAL:
            return [" " if argument != ord(" ") else "a", "a" if argument != ord("a") else "b"]
        case _constants.ANY:
            return [" ", "a", "("]
        case _constants.IN:
            return _sample_class(argument)
        case _constants.BRANCH:
            return [text for branch in argument[1] for text in _samples(list(branch))[:1]][: 2 * _SAMPLES]
        case _constants.SUBPATTERN:
            return _samples(list(argument[-1]))
        case _constants.ATOMIC_GROUP:
            return _samples(list(argument))
        case _constants.MAX_REPEAT | _constants.MIN_REPEAT | _constants.POSSESSIVE_REPEAT:
            least, most, body = argument
            texts = [text * max(1, min(least, 40)) for text in _samples(list(body))]
            return ["", *texts] if least == 0 and most == 1 else texts
        case _:  # conditions, anchors, references to groups
            return [""]


def _sample_class(items: list[Any]) -> list[str]:
    """Return characters of a class; of a negated one, some that are not in it."""
    negated = items[0][0] is _constants.NEGATE
    usual = " a1\n\t(.,;:-x0A–'\""
    chosen = [char for char in usual if _is_in(char, items) != negated]
    for kind, argument in items:
        if not negated and kind is _constants.LITERAL:
            chosen.append(chr(argument))
        elif not negated and kind is _constants.RANGE:
            chosen.append(chr(argument[0]))
    return list(dict.fromkeys(chosen))[:_SAMPLES] or ["é"]


def _is_in(char: str, items: list[Any]) -> bool:
    tests: Mapping[Any, Callable[[str], bool]] = {
        _constants.CATEGORY_DIGIT: str.isdigit,
        _constants.CATEGORY_NOT_DIGIT: lambda each: not each.isdigit(),
        _constants.CATEGORY_SPACE: str.isspace,
        _constants.CATEGORY_NOT_SPACE: lambda each: not each.isspace(),
        _constants.CATEGORY_WORD: lambda each: each.isalnum() or each == "_",
        _constants.CATEGORY_NOT_WORD: lambda each: not (each.isalnum() or each == "_"),
    }
    for kind, argument in items:
        if kind is _constants.LITERAL and ord(char) == argument:
            return True
        if kind is _constants.RANGE and argument[0] <= ord(char) <= argument[1]:
            return True
        if kind is _constants.CATEGORY and tests[argument](char):
            return True
    return False


# -- Times ---------------------------------------------------------------------------------------------------------


class _TooLongError(Exception):
    """The alarm rang."""


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise _TooLongError after `seconds` of this process's time."""

    def ring(*_: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def apply(pattern: re.Pattern[str], method: str, text: str) -> None:
    """Apply a pattern by one of `METHODS`, to the end."""
    match method:
        case "finditer":
            for _ in pattern.finditer(text):
                pass
        case "sub" | "subn":
            pattern.sub("", text)
        case _:
            getattr(pattern, method)(text)


def measure(pattern: re.Pattern[str], method: str, text: str, seconds: float = ALARM_S) -> float:
    """Measure the seconds that it takes; infinite after `seconds`."""
    try:
        with _alarm(seconds):
            began = time.thread_time()
            apply(pattern, method, text)
            return time.thread_time() - began
    except _TooLongError:
        return float("inf")


def find_superlinear(use: Use, sizes: tuple[int, int] = SIZES) -> str | None:
    """Describe the first text on which a pattern takes too long, or None."""
    for before, pump, end in build_texts(use.pattern):
        short, long = (before + pump * (size // len(pump)) + end for size in sizes)
        for method in sorted(use.methods):
            base = measure(use.pattern, method, short)
            if base < SHORT_S:
                continue
            took = measure(use.pattern, method, long)
            if took < LEAST_S or took < GROWTH * base:
                continue
            base = min(base, *(measure(use.pattern, method, short) for _ in range(2)))  # another process may disturb
            took = min(took, measure(use.pattern, method, long))
            if took == float("inf") or (took > LEAST_S and took > GROWTH * base):
                return f"{method} on {before[:40]!r} + {pump[:40]!r} * {sizes[1] // len(pump)} + {end!r}: {took:.3f} s"
    return None
