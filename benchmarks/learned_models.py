"""Models of tables, as skl2onnx and onnxmltools export what scikit-learn, XGBoost and LightGBM learn.

    python -P benchmarks/learned_models.py FOLDER

Needs scikit-learn, skl2onnx, onnxmltools, xgboost, lightgbm and pandas, and none of nnrewrite. Every estimator of a
list learns 200 random rows of 6 features; classifiers learn two classes, three, and three that have names. What an
exporter refuses is printed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import onnx
import pandas
import xgboost
from onnxmltools import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as Features
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn import (
    base,
    calibration,
    cluster,
    compose,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_selection,
    gaussian_process,
    impute,
    linear_model,
    mixture,
    multiclass,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

OPSETS = {"": 18, "ai.onnx.ml": 3}
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 6)).astype(np.float32)
NUMBERS = (X @ rng.normal(size=6) + np.sin(X[:, 0] * 3)).astype(np.float32)
TWO, THREE = (NUMBERS > 0).astype(int), np.digitize(NUMBERS, [-1, 1])
CLASSES = {"two": TWO, "three": THREE, "named": np.array(["cat", "dog", "emu"])[THREE]}
BASES = [("line", linear_model.Ridge()), ("tree", tree.DecisionTreeRegressor(max_depth=3))]
JUDGES = [("line", linear_model.LogisticRegression()), ("tree", tree.DecisionTreeClassifier(max_depth=3))]

REGRESSORS = (
    linear_model.LinearRegression(), linear_model.Ridge(), linear_model.Lasso(0.01), linear_model.ElasticNet(0.01),
    linear_model.HuberRegressor(), linear_model.SGDRegressor(), linear_model.PoissonRegressor(),
    linear_model.TweedieRegressor(power=1.5), tree.DecisionTreeRegressor(max_depth=6),
    tree.ExtraTreeRegressor(max_depth=6), ensemble.RandomForestRegressor(20, max_depth=7),
    ensemble.ExtraTreesRegressor(20), ensemble.GradientBoostingRegressor(n_estimators=20),
    ensemble.HistGradientBoostingRegressor(max_iter=20), ensemble.AdaBoostRegressor(n_estimators=5),
    ensemble.BaggingRegressor(n_estimators=5), ensemble.VotingRegressor(BASES), ensemble.StackingRegressor(BASES),
    ensemble.IsolationForest(n_estimators=10), svm.SVR(), svm.SVR(kernel="linear"), svm.SVR(kernel="poly"),
    svm.NuSVR(), svm.LinearSVR(), neighbors.KNeighborsRegressor(),
    neural_network.MLPRegressor(hidden_layer_sizes=(10,), max_iter=50),
    gaussian_process.GaussianProcessRegressor(), cross_decomposition.PLSRegression(2),
)  # fmt: skip
CLASSIFIERS = (
    linear_model.LogisticRegression(), linear_model.RidgeClassifier(), linear_model.SGDClassifier(loss="log_loss"),
    linear_model.SGDClassifier(), linear_model.Perceptron(), tree.DecisionTreeClassifier(max_depth=6),
    ensemble.RandomForestClassifier(20, max_depth=7), ensemble.ExtraTreesClassifier(10),
    ensemble.GradientBoostingClassifier(n_estimators=10), ensemble.HistGradientBoostingClassifier(max_iter=10),
    ensemble.AdaBoostClassifier(n_estimators=5), ensemble.BaggingClassifier(n_estimators=5),
    ensemble.VotingClassifier(JUDGES, voting="soft"), ensemble.StackingClassifier(JUDGES), svm.SVC(),
    svm.SVC(probability=True), svm.SVC(kernel="linear"), svm.NuSVC(), svm.LinearSVC(),
    neighbors.KNeighborsClassifier(), neural_network.MLPClassifier((10,), max_iter=50), naive_bayes.GaussianNB(),
    naive_bayes.BernoulliNB(), discriminant_analysis.LinearDiscriminantAnalysis(),
    discriminant_analysis.QuadraticDiscriminantAnalysis(),
    multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
    calibration.CalibratedClassifierCV(linear_model.LogisticRegression(), cv=2),
)  # fmt: skip
TRANSFORMERS = (
    preprocessing.StandardScaler(), preprocessing.MinMaxScaler(), preprocessing.MaxAbsScaler(),
    preprocessing.RobustScaler(), preprocessing.Normalizer(), preprocessing.Normalizer("l1"),
    preprocessing.Normalizer("max"), preprocessing.Binarizer(), preprocessing.PolynomialFeatures(2),
    preprocessing.KBinsDiscretizer(4, encode="ordinal"), preprocessing.KBinsDiscretizer(4, encode="onehot-dense"),
    preprocessing.PowerTransformer(), preprocessing.QuantileTransformer(n_quantiles=20), decomposition.PCA(3),
    decomposition.IncrementalPCA(3), decomposition.TruncatedSVD(3), cluster.KMeans(3), cluster.MiniBatchKMeans(3),
    mixture.GaussianMixture(3), impute.SimpleImputer(), impute.KNNImputer(), feature_selection.SelectKBest(k=3),
    feature_selection.VarianceThreshold(),
    pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(4), linear_model.LogisticRegression()),
    pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.MinMaxScaler(), ensemble.RandomForestClassifier(5)),
)  # fmt: skip
BOOSTED = {"n_estimators": 10, "max_depth": 4}

Make = Callable[[], onnx.ModelProto]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    for place, (name, make) in enumerate(list_models()):
        try:
            onnx.save(make(), folder / f"{place:03}_{name}.onnx")
        except Exception as error:  # of any kind, as exporters raise what they like
            print(f"{name}: {' '.join(str(error).split())[:120]}")


def list_models() -> Iterator[tuple[str, Make]]:
    """The names of models, each with what makes it."""
    for one in REGRESSORS:
        positive = type(one).__name__ in ("PoissonRegressor", "TweedieRegressor")
        yield type(one).__name__, partial(export, one, abs(NUMBERS) if positive else NUMBERS)
    for one in CLASSIFIERS:
        for kind, y in CLASSES.items():
            yield f"{type(one).__name__}_{kind}", partial(export, base.clone(one), y)
    for one in TRANSFORMERS:
        yield type(one).__name__, partial(export, one, THREE)
    yield "columns", export_columns
    for kind, y in (("two", TWO), ("three", THREE)):
        yield f"XGBClassifier_{kind}", partial(export_boosted, xgboost.XGBClassifier(**BOOSTED), y)
        yield f"LGBMClassifier_{kind}", partial(export_boosted, lightgbm.LGBMClassifier(**BOOSTED, verbose=-1), y)
    yield "XGBRegressor", partial(export_boosted, xgboost.XGBRegressor(**BOOSTED), NUMBERS)
    yield "LGBMRegressor", partial(export_boosted, lightgbm.LGBMRegressor(**BOOSTED, verbose=-1), NUMBERS)


def export(one: Any, y: Any) -> onnx.ModelProto:
    """What an estimator learns, without the maps that classifiers are exported with by default."""
    one.fit(X, y)
    try:
        made: onnx.ModelProto = to_onnx(one, X[:1], options={id(one): {"zipmap": False}}, target_opset=OPSETS)
    except Exception:  # it has no such option
        made = to_onnx(one, X[:1], target_opset=OPSETS)
    return made


def export_columns() -> onnx.ModelProto:
    """Columns of several types, each prepared as it is usual."""
    words, numbers = rng.choice(["r", "g", "b"], 200), rng.integers(0, 4, 200)
    rows = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": words, "d": numbers})
    parts = compose.ColumnTransformer(
        [
            ("real", preprocessing.StandardScaler(), ["a", "b"]),
            ("word", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["c"]),
            ("number", preprocessing.OrdinalEncoder(), ["d"]),
        ]
    )
    one = pipeline.make_pipeline(parts, linear_model.LogisticRegression()).fit(rows, THREE)
    types = [(name, FloatTensorType([None, 1])) for name in "ab"]
    types += [("c", StringTensorType([None, 1])), ("d", Int64TensorType([None, 1]))]
    options = {id(one): {"zipmap": False}}
    made: onnx.ModelProto = to_onnx(one, initial_types=types, options=options, target_opset=OPSETS)
    return made


def export_boosted(one: Any, y: Any) -> onnx.ModelProto:
    """What an estimator of many small trees learns."""
    one.fit(X, y)
    inputs = [("X", Features([None, 6]))]
    if isinstance(one, lightgbm.LGBMModel):
        made: onnx.ModelProto = convert_lightgbm(one, initial_types=inputs, zipmap=False)
    else:
        made = convert_xgboost(one, initial_types=inputs)
    return made


if __name__ == "__main__":
    main()
