"""Functions are verbs: the first word of a function's name is one of the list below, in the imperative."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from nnrewrite.engine.base.data_files import OPS

ROOT = OPS.parent
FOLDERS = ("engine", "frontends", "backends", "conversion", "partition", "verify", "page", "fuzz", "cli")
#: what a predicate begins with
PREDICATES = frozenset({"are", "can", "has", "is", "may", "must"})
#: what other functions begin with; a new word is a verb that says what is done, or there is one here that does
VERBS = """
abandon abbreviate accept add adopt advance advise align allow answer append apply arrange ask assign attach attempt
begin bind bound broadcast build calculate call carry cast change charge check choose clear clip close collect
combine commit compare compile complete compose compress compute connect convert copy count cover create cut damage
decide declare decode defer delay densify dequantize describe deserialize detach diagnose digest discard distinguish
divide draft drain draw drive drop embed emit empty encode end enlarge enter enumerate escape estimate evaluate
evict examine expand expect expire explain expose extend externalize extract fail feed fetch fill find finish fit
fix flatten flush fold follow forget format freeze fuse fuzz generalize generate get give group grow guard guess
hash hoist hold import improve indent index infer inherit initialize inline insert install interpolate intersect
invert invoke isolate iterate join judge jump keep label lay lead leave lift limit link list load locate log look
lower make map mark match measure memoize merge move multiply mutate name narrow negate nest normalize note nudge
number object observe offer open optimize order outline override pack pair parse partition patch pause permute perturb
pick place plan preload prepare print profile propose prune put quantize quote raise rank reach read rearrange rebuild
recall receive recognize recompute record reduce refer refresh refuse register regroup reject release remap remember
remove rename render renew reorder repeat replace replay report repr requantize require reread rerun reserve reset
reshape resize resolve restate restore restrict return retype reuse reverse review revise rewrite round run salvage
sample save scale search seek segment select send separate serialize serve set settle share shift shorten show shrink
shuffle simplify sink sketch skip solve sort space spell spend split spread stack start state stop store strip
substitute subtract suggest sum summarize survey suspend swap sweep take test thaw thread time touch trace track
translate transpose trim truncate try unify unpack unquote unroll unshare update use validate vary verify view visit
wait walk warn watch weigh widen wrap write yield
"""
#: words that are as well nouns: alone they say nothing of what is done, so another word is behind them
NOUNS = """
cast cut damage end fit format group guard hash index label limit link list map match move name note number object
offer order outline override pair pause place plan print profile rank reach record round set shift sink space stack
strip sum survey test thread trace update view
"""
#: names that are given from outside: the Python calls, what other libraries call, and what stands for one of theirs
GIVEN = frozenset({"but", "dataclass", "main", "members", "models", "readable", "readinto", "seekable"})
#: decorators of what is no function to its users, or is called by its name in rules and on the command line
DECORATORS = frozenset({"cached_property", "command", "overload", "property", "setter"})
#: classes whose methods are named by a grammar or by what they visit
NAMED_BY_OTHERS = frozenset({"HTMLParser", "NodeTransformer", "NodeVisitor", "Transformer"})


def functions(module: ast.AST, inside: frozenset[str] = frozenset()) -> Iterator[ast.FunctionDef]:
    """The functions and methods of a module, those of rules and of a library's classes left out."""
    for node in ast.iter_child_nodes(module):
        if isinstance(node, ast.FunctionDef) and not inside & NAMED_BY_OTHERS:
            if not words(node.decorator_list) & DECORATORS and not node.name.startswith("__"):
                yield node
            yield from functions(node)
        else:
            yield from functions(node, words(node.bases) if isinstance(node, ast.ClassDef) else inside)


def words(expressions: list[ast.expr]) -> frozenset[str]:
    """The last names of decorators and bases."""
    nodes = (node.value if isinstance(node, ast.Subscript) else node for node in expressions)
    nodes = (node.func if isinstance(node, ast.Call) else node for node in nodes)
    return frozenset(ast.unparse(node).rpartition(".")[2] for node in nodes)


def is_verb(name: str) -> bool:
    """Whether a name says what is done, or asks what is so."""
    bare = name.strip("_")
    first, _, others = bare.partition("_")
    return (
        bare in GIVEN or first in PREDICATES or (first in VERBS.split() and bool(others or first not in NOUNS.split()))
    )


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_functions_begin_with_a_verb(folder: str) -> None:
    nouns = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for file in sorted((ROOT / folder).rglob("*.py"))
        if file.parent.name != "functions"  # those that rules call by their names
        for node in functions(ast.parse(file.read_text(encoding="utf-8")))
        if not is_verb(node.name)
    ]
    assert not nouns


def test_nouns_adverbs_and_participles_are_none() -> None:
    for name in ("_layout", "between", "linking", "takes", "of_type", "name", "_order"):
        assert not is_verb(name), name
    for name in ("find_layout", "_insert", "is_linked", "name_rule", "order_axes"):
        assert is_verb(name), name
