"""Completion: what a shell offers for the values of options and arguments.

Each function takes click's context and parameter and the text before the cursor. What takes long to find, such as the
rules of packs, is imported as it is asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..engine.base.data_files import BUILT_IN

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_RULES = BUILT_IN


def offer_words(*known: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Offer some words."""
    return lambda ctx, param, text: _select_begun(known, text)


def offer_packs(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Offer the packs that come with the program, and folders."""
    return _offer_or_folders((path.name for path in _RULES.iterdir() if any(path.glob("*.rules"))), text)


def offer_targets(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Offer the targets that come with the program, and folders."""
    return _offer_or_folders((path.parent.name for path in _RULES.glob("*/target.yaml")), text)


def offer_models(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Offer files, and subcommands where one may stand."""
    from .dispatch import COMMANDS

    given = [name for name in ctx.params if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    names = [] if given or ctx.info_name == "convert" else _select_begun(COMMANDS, text)
    return [*names, *_offer_paths(text)] if names else [_make_item(text, "file")]


def offer_commands(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Offer subcommands."""
    from .dispatch import COMMANDS

    return _select_begun(COMMANDS, text)


def offer_operators(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Offer the operators that the rules read."""
    from ..engine.packs import loader as found

    pack = found.load(ctx.params.get("rules") or ("tflite2onnx",))
    return _select_begun(pack.catalogue.find_dialect(pack.source).operators, text.upper())


def offer_rules(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Offer the names of rules, those of a family by the name of the family."""
    from ..engine.packs import loader as found
    from ..engine.syntax import tree

    items = (item for file in found.load(ctx.params.get("rules") or ("tflite2onnx",)).files for item in file.items)
    return _select_begun((item.name for item in items if isinstance(item, tree.Rule | tree.Table)), text)


def offer_signatures(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Offer the signatures of the models that are given already."""
    from ..conversion.subject import list_signatures

    return _select_begun(("all", *_read_model(ctx, list_signatures)), text)


def offer_members(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Offer the models in the bundles that are given already."""
    from ..conversion.subject import members as found

    return _select_begun(_read_model(ctx, found), text)


def _read_model(ctx: click.Context, ask: Callable[[Path], Iterable[str]]) -> Iterator[str]:
    from ..engine.base.errors import RewriteError

    # Click stops reading a line where an option lacks its value, with the arguments before it in hand.
    for model in ctx.params.get("models") or ctx.args:
        with contextlib.suppress(RewriteError):
            yield from ask(Path(model))


def _select_begun(known: Iterable[str], text: str) -> list[CompletionItem]:
    return [_make_item(name) for name in sorted(set(known)) if name.startswith(text)]


def _make_item(text: str, kind: str = "plain") -> CompletionItem:
    from click.shell_completion import CompletionItem

    return CompletionItem(text, type=kind)


def _offer_or_folders(known: Iterable[str], text: str) -> list[CompletionItem]:
    """The words that a text begins, or folders where it begins none."""
    return _select_begun(known, text) or [_make_item(text, "dir")]


def _offer_paths(text: str) -> list[CompletionItem]:
    """The files and folders that a text begins, by name: click has a shell list them only where no word fits."""
    folder, _, begun = text.rpartition("/")
    with contextlib.suppress(OSError):
        return [
            _make_item(f"{folder}/{path.name}" if folder else path.name)
            for path in sorted(Path(folder or ".").iterdir())
            if path.name.startswith(begun) and (begun or not path.name.startswith("."))
        ]
    return []
