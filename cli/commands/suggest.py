"""The command `rewrite suggest`: a rule for an operator, looked for with the interpreter as the oracle."""

from __future__ import annotations

import sys

import click

from .. import completion, flags

#: the default time in seconds
SECONDS = 60.0


@click.command("rewrite suggest", context_settings={"help_option_names": ["-h", "--help"]})
@flags.rules
@flags.add_seconds("Time for the search.", SECONDS)
@flags.model_seed
@flags.as_json
@click.argument("operator", metavar="OPERATOR", shell_complete=completion.offer_operators)
def command(rules: tuple[str, ...], seconds: float, seed: int, as_json: bool, operator: str) -> None:
    """Propose a rule with its test for an operator: templates of up to three nodes of the target are tried.

    What the operator computes is asked of the TensorFlow Lite interpreter. A rule that is printed has no mistakes, and
    models converted with it gave the interpreter's results; it holds for the element types that it names. Rules that
    there are already about the operator are not used.

    Exit status: 0 a rule is printed; 1 none found; 2 there is no such operator or rule pack, or a pack has mistakes.
    """
    from ...engine.packs import loader
    from ...engine.passes.support import find_operator, survey_support
    from ...fuzz.suggest import suggest
    from ...verify.interpreter import Interpreter
    from ..json_documents import make_diagnostic, show

    pack = loader.load(rules)
    one = find_operator(survey_support(pack.files, pack.catalogue), operator)
    name = one.operator.name
    if one.uses:
        click.echo(f"{name} has a rule already ({one.uses[0].rule}); it is searched as if it had none", err=True)
    with Interpreter() as interpreter:
        found = suggest(rules, one.operator, interpreter, seconds, seed)
    if as_json:
        said = [] if found else [make_diagnostic(f"{name}: none found", "NoneFound")]
        results = [{"operator": name, "rule": found.rule, "text": found.text, "nodes": found.nodes}] if found else []
        show("suggest", found is not None, results, said, models=found.models if found else 0)
    elif found:
        click.echo(f"# {found.models} models agree with the interpreter\n{found.text}", nl=False)
    else:
        click.echo(f"{name}: none found")
    sys.exit(0 if found else 1)
