"""Draw what models of the gallery compute: the pictures of docs/static/gallery.

    pip install matplotlib scikit-image onnxruntime
    python docs/draw_gallery.py FOLDER_WITH_MODELS

The models are converted here, and ONNX Runtime runs the results on photographs that come with scikit-image: an
astronaut (NASA, public domain) and a cat (CC0).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import nnrewrite
import numpy as np
import onnxruntime
from skimage import data, transform

FOLDER = Path(__file__).parent / "static" / "gallery"
Image = np.ndarray[Any, np.dtype[np.float32]]
Run = Callable[..., list[Any]]


def main(models: Path) -> None:
    FOLDER.mkdir(exist_ok=True)
    astronaut, cat = (np.asarray(photo / 255, np.float32) for photo in (data.astronaut(), data.chelsea()))
    draw_faces(load(models, "face_detection_front"), astronaut)
    face = astronaut[20:200, 140:320]
    draw_points(load(models, "face_landmark"), "face_landmark", face, 192, 0, 3)
    draw_eye(load(models, "iris_landmark"), astronaut[85:129, 218:262])
    draw_points(load(models, "pose_landmark_lite"), "pose_landmark_lite", astronaut, 256, 0, 5)
    draw_cut(load(models, "segm_full_v679"), astronaut[40:328])
    draw_kinds(load(models, "deeplabv3_257_mv_gpu"), astronaut)
    draw_cartoon(load(models, "whitebox_cartoon_gan_fp16"), astronaut)
    draw_style(load(models, "style_predict_quantized_256"), load(models, "style_transfer_quantized_dynamic"), cat)


def load(models: Path, name: str) -> Run:
    """A model, converted, as a function of its inputs."""
    (path, *_) = sorted(models.rglob(f"{name}.tflite"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        nnrewrite.rewrite(path).save(file)
        session = onnxruntime.InferenceSession(file)
    names = [one.name for one in session.get_inputs()]
    return lambda *arrays: session.run(None, dict(zip(names, arrays, strict=True)))


def shrink(photo: Image, height: int, width: int) -> Image:
    """A photograph as a model takes it: floats from 0 to 1, one image."""
    return np.asarray(transform.resize(photo, (height, width), anti_aliasing=True), np.float32)[None]


def save(name: str, shown: Sequence[Any], points: Any = None, boxes: Sequence[Any] = (), size: float = 2) -> None:
    """Write pictures beside each other, points (x, y) and boxes (left, top, width, height) drawn over the last."""
    ratio = shown[0].shape[1] / shown[0].shape[0]
    figure, axes = plt.subplots(1, len(shown), figsize=(2.6 * ratio * len(shown), 2.6), squeeze=False)
    for one, axis in zip(shown, axes[0], strict=True):
        axis.imshow(np.clip(one, 0, 1))
        axis.axis("off")
    if points is not None:
        axes[0][-1].scatter(points[:, 0], points[:, 1], s=size, c="#00e5ff", linewidths=0)
    for left, top, width, height in boxes:
        axes[0][-1].add_patch(plt.Rectangle((left, top), width, height, fill=False, color="#ff9100", linewidth=2))
    figure.subplots_adjust(0, 0, 1, 1, 0.02, 0)
    figure.savefig(FOLDER / f"{name}.jpg", dpi=100, pil_kwargs={"quality": 85})
    plt.close(figure)


def draw_faces(run: Run, photo: Image) -> None:
    """A box and six points: BlazeFace counts from the centres of 16 x 16 cells, two each, and of 8 x 8, six each."""
    boxes, scores = run(shrink(photo, 128, 128) * 2 - 1)
    centres = np.concatenate([np.repeat(make_grid(cells), count, axis=0) for cells, count in ((16, 2), (8, 6))])
    best = int(scores[0, :, 0].argmax())
    x, y, width, height, *rest = boxes[0, best] / 128 * photo.shape[0]
    middle = centres[best] * photo.shape[0]
    corner = (middle[0] + x - width / 2, middle[1] + y - height / 2)
    save("face_detection_front", [photo], np.reshape(rest, (6, 2)) + middle, [(*corner, width, height)], 14)


def make_grid(cells: int) -> Image:
    """The centres of square cells, as parts of an edge: x and y, row by row."""
    y, x = np.mgrid[:cells, :cells]
    return np.stack([x, y], axis=-1).reshape(-1, 2).astype(np.float32) / cells + 0.5 / cells


def draw_points(run: Run, name: str, photo: Image, edge: int, output: int, step: int) -> None:
    """Points of which a model tells x, y and more, in pixels of its input."""
    found = run(shrink(photo, edge, edge))[output].reshape(-1, step)[:, :2] * (photo.shape[1] / edge)
    save(name, [photo], found[:468] if step == 3 else found[:33], size=2 if step == 3 else 16)


def draw_eye(run: Run, photo: Image) -> None:
    contour, iris = run(shrink(photo, 64, 64))
    found = np.concatenate([contour.reshape(-1, 3)[:16, :2], iris.reshape(-1, 3)[:, :2]])
    save("iris_landmark", [photo], found * (photo.shape[0] / 64), size=16)


def draw_cut(run: Run, photo: Image) -> None:
    (scores,) = run(shrink(photo, 144, 256))
    person = 1 / (1 + np.exp(scores[0, :, :, 0] - scores[0, :, :, 1]))
    whole = transform.resize(person, photo.shape[:2])[..., None]
    save("segm_full_v679", [photo * whole + np.asarray([0.1, 0.5, 0.4]) * (1 - whole)])


def draw_kinds(run: Run, photo: Image) -> None:
    (scores,) = run(shrink(photo, 257, 257) * 2 - 1)
    kinds = transform.resize(scores[0], (*photo.shape[:2], 21)).argmax(-1)
    save("deeplabv3_257_mv_gpu", [0.45 * photo + 0.55 * plt.get_cmap("tab20")(kinds % 20)[..., :3]])


def draw_cartoon(run: Run, photo: Image) -> None:
    (drawn,) = run(shrink(photo, 224, 224) * 2 - 1)
    save("whitebox_cartoon_gan", [(drawn[0] + 1) / 2])


def draw_style(predict: Run, transfer: Run, photo: Image) -> None:
    """A photograph in the style of another picture, of which one network makes 100 numbers for the other."""
    style = np.asarray(data.hubble_deep_field()[:600, :600] / 255, np.float32)
    (numbers,) = predict(shrink(style, 256, 256))
    (drawn,) = transfer(shrink(photo[:, 80:380], 384, 384), numbers)
    save("style_transfer", [drawn[0]])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
