"""The worker: a process of its own that runs the TFLite interpreter, which aborts on some ill-formed models.

`python -m nnrewrite.verify.worker` answers frames on standard input with frames on standard output until its input
ends. A request that raises is answered with `error`. Requests are served by a fork, so that a crash costs no more than
another fork; it is answered with `crash` and the exit status.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from .frames import Array, FrameSink, FrameSource, receive, send

# The interpreter's three sets of kernels: with its default delegate (XNNPACK), optimized without it, reference.
RESOLVERS = {"default": "AUTO", "optimized": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "reference": "BUILTIN_REF"}

#: the model that is timed, where one is
_loaded: list[Any] = []


def serve(requests: FrameSource, answers: FrameSink) -> None:
    """Answer requests until the stream ends."""
    while True:
        try:
            request, arrays = receive(requests)
        except EOFError:
            return
        try:
            header, results = answer_request(request, arrays)
        except Exception as error:  # the client turns whatever the interpreter raised into one line
            header, results = {"error": f"{error}" or type(error).__name__}, []
        send(answers, header, results)


def answer_request(request: dict[str, Any], arrays: list[Array]) -> tuple[dict[str, Any], list[Array]]:
    """Answer one request: `describe` a model's inputs and outputs, or `run` it on the samples given.

    The model is the file at `path`, or the bytes in the first array. The other arrays are the inputs of the first
    sample, then those of the second, and so on; the results are ordered likewise. `layers` runs one sample and answers
    with what each operator yields, in the order in which they run. `load` keeps a model to `time` it.
    """
    if request["action"] == "time":
        return {"seconds": _time_runs(request["runs"])}, []
    if request["action"] == "load":
        interpreter = _load_model(request, arrays, num_threads=request["threads"])
        _run(interpreter, arrays, 1)
        _loaded[:] = [interpreter]
        return {}, []
    if request["action"] == "layers":
        return _run_layers(_load_model(request, arrays, experimental_preserve_all_tensors=True), arrays)
    model = request.get("path") or arrays[0]
    again = _prepare_model(request, arrays)
    if request.get("signature"):
        return _answer_signature(again, request, arrays)
    interpreter = again()
    if request["action"] == "describe":
        found = {
            "metadata": _read_metadata(model),
            "inputs": [_describe(detail) for detail in interpreter.get_input_details()],
            "outputs": [
                {**_describe(detail), "step": _find_step(interpreter, detail["index"])}
                for detail in interpreter.get_output_details()
            ],
        }
        return found, []
    return {}, _run(interpreter, arrays, request["samples"], request.get("keep", False), again)


def _read_metadata(model: str | Array) -> dict[str, str]:
    """The entries of a model's metadata that are plain text."""
    import numpy as np
    from ai_edge_litert import schema_py_generated as schema

    data = np.memmap(model, np.uint8, "r") if isinstance(model, str) else model
    root = schema.Model.GetRootAs(data)
    found: dict[str, str] = {}
    for entry in map(root.Metadata, range(root.MetadataLength())):
        name, number = entry.Name(), entry.Buffer()
        if name and number < root.BuffersLength() and root.Buffers(number).DataLength():
            text = root.Buffers(number).DataAsNumpy().tobytes()
            if name.isascii() and text.isascii():
                found[name.decode()] = text.decode()
    return found


def _prepare_model(request: dict[str, Any], arrays: list[Array], **options: Any) -> Callable[[], Any]:
    """What makes an interpreter with the model of a request, which is taken off the arrays where it is not a file."""
    model = {"model_path": request["path"]} if "path" in request else {"model_content": arrays.pop(0).tobytes()}
    return functools.partial(_make_interpreter, request["kernels"], **model, **options)


def _load_model(request: dict[str, Any], arrays: list[Array], **options: Any) -> Any:
    return _prepare_model(request, arrays, **options)()


def _time_runs(runs: int) -> list[float]:
    """The seconds of each of several runs of the model that was loaded."""
    (interpreter,) = _loaded
    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        interpreter.invoke()
        seconds.append(time.perf_counter() - started)
    return seconds


def _answer_signature(
    again: Callable[[], Any], request: dict[str, Any], arrays: list[Array]
) -> tuple[dict[str, Any], list[Array]]:
    """Answer a request about one signature: its name, and to run it the names of its inputs and outputs."""
    key, *names = request["signature"]
    interpreter = again()
    runner = interpreter.get_signature_runner(key)
    if request["action"] == "describe":
        sides = {"inputs": runner.get_input_details(), "outputs": runner.get_output_details()}
        return {
            side: [{**_describe(detail), "name": name} for name, detail in details.items()]
            for side, details in sides.items()
        }, []
    inputs, outputs = names
    results: list[Array] = []
    for sample in range(request["samples"]):
        if sample and not request["keep"]:
            try:
                interpreter.reset_all_variables()
            except RuntimeError:  # operators compute one of them
                interpreter = again()
                runner = interpreter.get_signature_runner(key)
        given = dict(zip(inputs, arrays[sample * len(inputs) :], strict=False))
        found = runner(**given)
        results += [_convert_output(found[name]) for name in outputs]
    return {}, results


def _run_layers(interpreter: Any, arrays: list[Array]) -> tuple[dict[str, Any], list[Array]]:
    import numpy as np

    _run(interpreter, arrays, 1)
    details = {detail["index"]: detail for detail in interpreter.get_tensor_details()}
    layers: list[dict[str, Any]] = []
    results: list[Array] = []
    operators = interpreter._get_ops_details()
    # Of a tensor that is written several times the last content is there.
    last = {int(index): number for number, operator in enumerate(operators) for index in operator["outputs"]}
    for number, operator in enumerate(operators):
        for place, index in enumerate(operator["outputs"]):
            if index not in details or last[int(index)] != number or details[index]["dtype"] is np.object_:
                continue  # of a handle there is no content: to ask for it crashes
            try:
                array = _fetch(interpreter, details[index])
            except ValueError:  # a tensor that the interpreter did not keep
                continue
            layers.append({"number": number, "place": place, **_describe(details[index])})
            results.append(array)
    return {"layers": layers}, results


def _make_interpreter(kernels: str, **model: Any) -> Any:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    return Interpreter(experimental_op_resolver_type=getattr(OpResolverType, RESOLVERS[kernels]), **model)


def _describe(detail: dict[str, Any]) -> dict[str, Any]:
    quantization = detail["quantization_parameters"]
    dtype = detail["dtype"]
    return {
        "name": detail["name"],
        "dtype": "object" if dtype in (bytes, str, object) or dtype.__name__ in ("bytes_", "str_") else dtype.__name__,
        "shape": [int(size) for size in detail["shape"]],
        "signature": [int(size) for size in detail["shape_signature"]],
        "scales": [float(scale) for scale in quantization["scales"]],
        "zero_points": [int(zero) for zero in quantization["zero_points"]],
    }


def _find_step(interpreter: Any, index: int) -> float:
    """Find the scale of the one quantized value that an output is a float view of, 0 where it is none."""
    # No public function lists the operators; without this one an output is merely held to the float tolerance.
    operators: list[dict[str, Any]] = getattr(interpreter, "_get_ops_details", list)()
    for operator in operators:
        if index in operator["outputs"] and len(operator["inputs"]) == 1:
            (source,) = operator["inputs"]
            details = [detail for detail in interpreter.get_tensor_details() if detail["index"] == source]
            scales = [float(scale) for detail in details for scale in detail["quantization_parameters"]["scales"]]
            return scales[0] if len(scales) == 1 else 0.0
    return 0.0


def _run(
    interpreter: Any, arrays: list[Array], samples: int, keep: bool = False, again: Callable[[], Any] | None = None
) -> list[Array]:
    """Run samples one after another; their results. Unless `keep`, each sample finds variables as they are at first.

    An interpreter that cannot reset its variables, as operators compute one of them, is replaced by what `again` makes.
    """
    inputs = interpreter.get_input_details()
    shapes = [tuple(detail["shape"]) for detail in inputs]
    results: list[Array] = []
    for sample in range(samples):
        feed = arrays[sample * len(inputs) : (sample + 1) * len(inputs)]
        if not sample or shapes != [array.shape for array in feed]:
            _prepare_memory(interpreter, feed, shapes)
        shapes = [array.shape for array in feed]
        if not (keep and sample):
            try:
                interpreter.reset_all_variables()
            except RuntimeError:
                if sample and again is None:
                    raise
                if sample and again is not None:
                    interpreter = again()
                    _prepare_memory(interpreter, feed, [tuple(detail["shape"]) for detail in inputs])
        for detail, array in zip(inputs, feed, strict=True):
            interpreter.set_tensor(detail["index"], _convert_input(array))
        interpreter.invoke()
        results += [_fetch(interpreter, detail) for detail in interpreter.get_output_details()]
    return results


def _prepare_memory(interpreter: Any, feed: Sequence[Array], shapes: Sequence[tuple[int, ...]]) -> None:
    """Give inputs the shapes of what they are fed, where they have others, and lay out the memory."""
    for detail, shape, array in zip(interpreter.get_input_details(), shapes, feed, strict=True):
        if shape != array.shape:
            interpreter.resize_tensor_input(detail["index"], list(array.shape))
    interpreter.allocate_tensors()


def _convert_input(array: Array) -> Array:
    """One string as bytes of fixed length: of an object without axes the interpreter reads the address."""
    import numpy as np

    return np.array(array.item()) if array.dtype == object and array.ndim == 0 else array


def _fetch(interpreter: Any, detail: dict[str, Any]) -> Array:
    """The elements of a tensor; of one that has none the interface says, for want of memory, that its size is wrong."""
    import numpy as np

    if 0 in detail["shape"] and np.dtype(detail["dtype"]).kind in "biuf":
        return np.empty(detail["shape"], detail["dtype"])
    return _convert_output(np.asarray(interpreter.get_tensor(detail["index"])))


def _convert_output(array: Any) -> Array:
    """Strings as objects, which can be sent."""
    found: Array = array.astype(object) if array.dtype.kind in "SU" else array
    return found


def main() -> None:
    """Serve standard input and output, out of the reach of what native code prints."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if not hasattr(os, "fork"):
        serve(requests, answers)
        return
    with contextlib.suppress(ImportError):  # told to the client by the first request
        importlib.import_module("ai_edge_litert.interpreter")
    while code := _serve_fork(requests, answers):
        send(answers, {"crash": code})


def _serve_fork(requests: FrameSource, answers: FrameSink) -> int:
    """Serve in a fork; its exit status, which is below 0 for a signal, and 0 where the stream ended."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        serve(requests, answers)
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
