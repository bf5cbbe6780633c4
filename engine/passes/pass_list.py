"""Which passes a conversion has, in which order: the table of contents of a conversion."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

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


#: passes in their order, each with whether it is wanted
Steps: TypeAlias = list[tuple[Pass, bool]]


class _PassContext:
    """What the passes of a conversion depend on, and those of them that others know."""

    def __init__(self, rules: RuleSet, options: PassOptions) -> None:
        self.source, self.target = rules.source, rules.target
        self.across = rules.source is not rules.target
        self.code = rules.target.facts.python is not None  # in which there are methods to be filled in
        #: the source says by the types of values what is quantized or complex, and not by operators
        self.implied = self.across and not rules.source.schemas and rules.source.facts.python is None
        self.quantizes = self.across and rules.target.has_role(QUANTIZE_BY)
        self.resize = Resize(options.extents, options.given or options.adapted)
        self.fold = Fold(_TRAINED if options.folded is None and self.code else options.folded)


def list_passes(rules: RuleSet, options: PassOptions) -> list[Pass]:
    """The passes from the source dialect of some rules to their target, in the order in which they run."""
    context = _PassContext(rules, options)
    steps = [
        *_list_preparing(rules, options, context),
        *_list_converting(options, context),
        *_list_arranging(options, context),
        *_list_finishing(options, context),
    ]
    return [one for one, wanted in steps if wanted]


def _list_preparing(rules: RuleSet, options: PassOptions, context: _PassContext) -> Steps:
    """Those that change a model of the source into one that the rules can begin with: its ends, state and grids."""
    source, plain = context.source, options.plain
    named = source if source.schemas else context.target
    # where nothing is quantized, neither are inputs and outputs
    float_interface = options.float_interface and named.has_role("quantize") and not (context.implied and plain)
    newest: Steps = []
    if options.given is not None:
        # code is written of functions as such where rules know them
        newest = [(NewestForms(options.given), True), (Functions(options.given), not context.code)]
    return [
        (options.part, bool(options.part.inputs or options.part.outputs)),
        (FixDefaults(options.outputs), options.fixed),
        (context.resize, bool(options.extents)),  # while what is known of shapes is what the file says
        (HoldState(options.outputs), context.across and (context.code or context.target.has_role(VARIABLE))),
        (ModulePaths(), context.code),
        *newest,
        (Fold(options.folded, options.adapted), options.adapted is not None),
        *([(Adapt(options.adapted), True)] if options.adapted is not None else []),
        (FloatInterface(), float_interface),
        (KeepFloat16(), options.keep_float16),
        *([(State(_list_plain_passes(rules), options.internal_state), True)] if options.state else []),
        (Rules(INTEGERS, Visit.FUNCTIONS_FIRST), context.implied and not plain),
        (Complex(), context.implied),
        (QuantizeDequantize(plain), context.implied or (plain and not (context.across or source.schemas))),
        (Rules(INTEGERS, Visit.FUNCTIONS_FIRST), context.implied and plain),  # which take what is not quantized as well
        (context.fold, not context.across or source.schemas),
        (CommonSubexpressions(constants=True, visits=Visit.OUTSIDE_FIRST), not context.across),
    ]


def _list_converting(options: PassOptions, context: _PassContext) -> Steps:
    """Those that leave no operator of the source."""
    #: graphs inside others are functions where the source calls them by number
    inside = Visit.OUTSIDE_FIRST if context.source.schemas or not context.across else Visit.FUNCTIONS_FIRST
    rest: Steps = []
    if options.given is not None:
        # twice, as what a function is made of may have a rule that does not take it either
        rest = [(Functions(options.given, left=True), True), (Rules(LOWER, Visit.OUTSIDE_FIRST), True)] * 2
    supported = Supported(LOWER, Visit.OUTSIDE_FIRST, options.keep_custom, options.keep_all)
    return [
        (Rules(NORMALIZE, inside), True),
        (InferAgain(context.fold), context.across and context.source.schemas),
        (Rules(LOWER, Visit.OUTSIDE_FIRST), True),
        *rest,
        (supported, context.across and not context.code),
    ]


def _list_arranging(options: PassOptions, context: _PassContext) -> Steps:
    """Those that find larger operators and the order of axes in which they need the fewest Transposes."""
    ordered = not context.code or context.target.facts.channels is not None
    layout: Steps = []
    if options.layout is not None and ordered and (context.across or context.source.schemas):
        layout = [(PlaceTransposes(options.layout, options.outputs, copies=context.across), True)]
    return [
        (context.fold, not context.across),
        (CommonSubexpressions(constants=not context.across, visits=Visit.OUTSIDE_FIRST), True),
        (Rules(RECOVER, Visit.INSIDE_FIRST), True),
        (FollowExtents(), context.implied),
        *layout,
    ]


def _list_finishing(options: PassOptions, context: _PassContext) -> Steps:
    """Those that make the result smaller and faster, and hold it against what the target asks for."""
    again = Rules(SIMPLIFY, Visit.OUTSIDE_FIRST, coded=True)
    return [
        (Rules(SIMPLIFY, Visit.OUTSIDE_FIRST), options.tuned),
        (Rules(TUNE, Visit.OUTSIDE_FIRST), options.tuned),
        (context.fold, not context.across),
        (CommonSubexpressions(constants=True, visits=Visit.OUTSIDE_FIRST), True),
        (IntegerKernels(), context.quantizes),
        # what grids lay between, as of views and permutations, is next to each other now
        (again, options.tuned and context.quantizes),
        (CommonSubexpressions(), context.quantizes),  # of codes as well
        (KeepState(options.outputs), context.across and context.target.has_role(VARIABLE)),
        (Sweep(), not context.across),
        (OwnNodes(), context.target.facts.apart),
        (Sort(), True),
        (Closures(), context.target.facts.closed),
        (Accepted(), True),
        (CheckExtents(context.resize), bool(options.extents)),
    ]


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
