"""Which passes a conversion has, in which order: the table of contents of a conversion."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import onnx_ir as ir

from ..base.names import Scope
from ..base.quantization import QUANTIZE_BY
from ..base.startup import dataclass, field
from ..rewrite.rules import RuleSet
from ..rewrite.stages import INTEGERS, LOWER, NORMALIZE, RECOVER, SIMPLIFY, TUNE
from .accepted import Accepted
from .adapt import Adapt
from .base import Module, Pass, Visit, run_passes
from .closures import Closures
from .common_subexpressions import CommonSubexpressions
from .complex import Complex
from .fix_defaults import FixDefaults
from .float16 import KeepFloat16
from .float_interface import FloatInterface
from .fold import Fold
from .follow_extents import FollowExtents
from .functions import Functions
from .infer_again import InferAgain
from .integer_kernels import IntegerKernels
from .keep_state import HoldState, KeepState
from .layout import Interface, PlaceTransposes
from .layout.interface import SOURCE_INTERFACE
from .module_paths import ModulePaths
from .newest_forms import NewestForms
from .own_nodes import OwnNodes
from .part import Part
from .quantize_dequantize import QuantizeDequantize
from .resize import CheckExtents, RequestedShapes, Resize
from .rule_stage import Rules
from .sort import Sort
from .state import State
from .supported import Supported
from .sweep import Sweep
from .variables import VARIABLE

#: bytes by which constants of code may grow: weights that a model fills are there to be trained
_TRAINED = 1 << 31


@dataclass(frozen=True, slots=True)
class PassOptions:
    """What is asked of passes.

    `extents` are those asked for of the inputs, `layout` is that of the main graph's inputs and outputs, which are to
    be called `outputs`; None leaves permutations where rules put them. With `state` what a model keeps between calls
    becomes inputs and outputs, with `internal_state` it is neither. With `plain` nothing stays quantized, with
    `float_interface` the inputs and outputs do not. `keep_float16` keeps constants of that type, `keep_custom` custom
    operators that no rule is about, `keep_all` all that no rule takes. `folded` is how many bytes more than what they
    are made of computed constants may take (None: as usual). With `fixed` inputs with a default are constants. Without
    `tuned` what would only make the graph smaller or faster waits for a later step. `part` is what is to become of the
    main graph's ends, `given` the opset of a source whose operators have versions, where the target has others,
    `adapted` that of one which is written in another opset of the same dialect.
    """

    extents: RequestedShapes = field(default_factory=RequestedShapes)
    layout: Interface | None = None
    outputs: tuple[str, ...] = ()
    state: bool = False
    internal_state: bool = False
    plain: bool = False
    float_interface: bool = False
    keep_float16: bool = False
    keep_custom: bool = False
    keep_all: bool = False
    folded: int | None = None
    fixed: bool = False
    tuned: bool = True
    given: int | None = None
    adapted: int | None = None
    part: Part = field(default_factory=Part)


def list_passes(rules: RuleSet, options: PassOptions) -> list[Pass]:
    """The passes from the source dialect of some rules to their target, in the order in which they run."""
    resize = Resize(options.extents, options.given or options.adapted)
    across = rules.source is not rules.target
    code = rules.target.facts.python is not None  # in which there are methods to be filled in
    fold = Fold(_TRAINED if options.folded is None and code else options.folded)
    #: the source says by the types of values what is quantized or complex, and not by operators
    implied = across and not rules.source.schemas and rules.source.facts.python is None
    named = rules.source if rules.source.schemas else rules.target
    #: graphs inside others are functions where the source calls them by number
    inside = Visit.OUTSIDE_FIRST if rules.source.schemas or not across else Visit.FUNCTIONS_FIRST
    newest: list[tuple[Pass, bool]] = []
    rest: list[tuple[Pass, bool]] = []
    if options.given is not None:
        # code is written of functions as such where rules know them
        newest = [(NewestForms(options.given), True), (Functions(options.given), not code)]
        # twice, as what a function is made of may have a rule that does not take it either
        rest = [(Functions(options.given, left=True), True), (Rules(LOWER, Visit.OUTSIDE_FIRST), True)] * 2
    ordered = not code or rules.target.facts.channels is not None
    steps: list[tuple[Pass, bool]] = [
        (options.part, bool(options.part.inputs or options.part.outputs)),
        (FixDefaults(options.outputs), options.fixed),
        (resize, bool(options.extents)),  # while what is known of shapes is what the file says
        (HoldState(options.outputs), across and (code or rules.target.has_role(VARIABLE))),
        (ModulePaths(), code),
        *newest,
        (Fold(options.folded, options.adapted), options.adapted is not None),
        *([(Adapt(options.adapted), True)] if options.adapted is not None else []),
        # where nothing is quantized, neither are they
        (FloatInterface(), options.float_interface and named.has_role("quantize") and not (implied and options.plain)),
        (KeepFloat16(), options.keep_float16),
        *([(State(_list_plain_passes(rules), options.internal_state), True)] if options.state else []),
        (Rules(INTEGERS, Visit.FUNCTIONS_FIRST), implied and not options.plain),
        (Complex(), implied),
        (QuantizeDequantize(options.plain), implied or (options.plain and not (across or rules.source.schemas))),
        (Rules(INTEGERS, Visit.FUNCTIONS_FIRST), implied and options.plain),  # which take what is not quantized as well
        (fold, not across or rules.source.schemas),
        (CommonSubexpressions(constants=True, visits=Visit.OUTSIDE_FIRST), not across),
        (Rules(NORMALIZE, inside), True),
        (InferAgain(fold), across and rules.source.schemas),
        (Rules(LOWER, Visit.OUTSIDE_FIRST), True),
        *rest,
        (Supported(LOWER, Visit.OUTSIDE_FIRST, options.keep_custom, options.keep_all), across and not code),
        (fold, not across),
        (CommonSubexpressions(constants=not across, visits=Visit.OUTSIDE_FIRST), True),
        (Rules(RECOVER, Visit.INSIDE_FIRST), True),
        (FollowExtents(), implied),
        *(
            [(PlaceTransposes(options.layout, options.outputs, copies=across), True)]
            if options.layout is not None and ordered and (across or rules.source.schemas)
            else []
        ),
        (Rules(SIMPLIFY, Visit.OUTSIDE_FIRST), options.tuned),
        (Rules(TUNE, Visit.OUTSIDE_FIRST), options.tuned),
        (fold, not across),
        (CommonSubexpressions(constants=True, visits=Visit.OUTSIDE_FIRST), True),
        (IntegerKernels(), across and rules.target.has_role(QUANTIZE_BY)),
        # what grids lay between, as of views and permutations, is next to each other now
        (
            Rules(SIMPLIFY, Visit.OUTSIDE_FIRST, coded=True),
            options.tuned and across and rules.target.has_role(QUANTIZE_BY),
        ),
        (CommonSubexpressions(), across and rules.target.has_role(QUANTIZE_BY)),  # of codes as well
        (KeepState(options.outputs), across and rules.target.has_role(VARIABLE)),
        (Sweep(), not across),
        (OwnNodes(), rules.target.facts.apart),
        (Sort(), True),
        (Closures(), rules.target.facts.closed),
        (Accepted(), True),
        (CheckExtents(resize), bool(options.extents)),
    ]
    return [one for one, wanted in steps if wanted]


@functools.lru_cache(maxsize=8)
def _list_plain_passes(rules: RuleSet) -> list[Pass]:
    """The passes of a conversion without options, which keep nothing of one."""
    return list_passes(rules, PassOptions())


def list_names(rules: RuleSet) -> list[str]:
    """The names of all passes that a conversion by some rules may have, each once."""
    all_on = PassOptions(
        extents=RequestedShapes(batch=1),
        layout=SOURCE_INTERFACE,
        state=True,
        float_interface=True,
        keep_float16=True,
        fixed=rules.source is rules.target,
        part=Part(("input",)),
        given=1 if rules.source.schemas and rules.source is not rules.target else None,
        adapted=1 if rules.source is rules.target and rules.target.schemas else None,
    )
    return list(dict.fromkeys(one.name for one in list_passes(rules, all_on)))


def convert_graph(graph: ir.Graph, rules: RuleSet, functions: Sequence[ir.Graph] = ()) -> Module:
    """Run the passes on a graph that is a model by itself, without state; permutations stay where rules put them.

    Raises UnsupportedError with every node that no rule took.
    """
    module = Module(graph, rules, Scope(graph), functions)
    run_passes(list_passes(rules, PassOptions()), module)
    return module
