"""The names that packages other than NumPy changed since 2016, with their replacements."""

from __future__ import annotations

from typing import Mapping

from compat.scripts.names.python_names import within

_OWN = "compat.scripts.shims."
_KERAS = "tf_keras.api._v1.keras."
_OPTIMIZERS = "Adadelta Adagrad Adam Adamax Nadam RMSprop"
_SPLITS = "KFold LabelKFold LeaveOneOut ShuffleSplit StratifiedKFold StratifiedShuffleSplit"


# By the package and the release that removed the names: the replacement ("*" stands for the last
# part of the name), and the names.
GONE: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    # Keras 3 has no sessions.
    "Keras": {
        "2.4": {
            _KERAS + "backend:": "keras.backend.tensorflow_backend",
            _KERAS + "layers:": within(
                "keras.layers",
                "advanced_activations convolutional core embeddings merge noise normalization "
                "pooling recurrent wrappers",
            )
            + " keras.engine keras.engine.topology",
            _KERAS + "losses:": "keras.objectives",
            _KERAS + "models:": "keras.engine.training",
            _KERAS + "utils:": within("keras.utils", "generic_utils np_utils vis_utils"),
        },
        # Releases until 2.8 need these; later ones have the names.
        "2.5": {
            f"keras.optimizer_v2.{module}:*": f"keras.optimizers.{name}"
            for module, name in (
                *((name.lower(), name) for name in _OPTIMIZERS.split()),
                ("gradient_descent", "SGD"),
            )
        },
        "3.0": {_KERAS[:-1] + ":": "keras", "tf_keras:*": "keras.__version__"},
    },
    "matplotlib": {
        "3.0": {
            _OWN + "plots:*": "matplotlib.pyplot.hold matplotlib.pyplot.ishold",
            "matplotlib.cm:nipy_spectral": "matplotlib.cm.spectral",
            "matplotlib.cm:tab10": "matplotlib.cm.Vega10",
            "matplotlib.cm:tab20": "matplotlib.cm.Vega20",
            "matplotlib.pyplot:nipy_spectral": "matplotlib.pyplot.spectral",
        },
        "3.1": {
            _OWN + "plots:*": "matplotlib.mlab.bivariate_normal matplotlib.mlab.normpdf",
        },
        "3.3": {"numpy:*": "matplotlib.cbook.iterable"},
        "3.9": {"matplotlib.pyplot:*": "matplotlib.cm.get_cmap"},
    },
    "pandas": {
        "0.23": {
            _OWN + "frames:*": " ".join(
                f"pandas.{kind}_{of}"
                for kind in ("rolling", "expanding")
                for of in ("count", "max", "mean", "median", "min", "std", "sum", "var")
            )
            + " pandas.ewma pandas.ewmstd pandas.ewmvar",
        },
        "0.25": {
            "pandas.plotting:*": "pandas.scatter_matrix",
            "pandas.plotting:": "pandas.tools.plotting",
            "pandas:": "pandas.tools",
        },
        "1.0": {
            "pandas.arrays:*": "pandas.SparseArray",
            "pandas:*": "pandas.io.json.json_normalize",
        },
        "2.0": {
            "datetime:*": "pandas.datetime",
            "numpy:": "pandas.np",
            "pandas:Grouper": "pandas.TimeGrouper",
            "pandas.testing:": "pandas.util.testing",
            "pandas:Index": "pandas.Float64Index pandas.Int64Index pandas.UInt64Index",
        },
        "3.0": {_OWN + "frames:*": "pandas.value_counts"},
    },
    "Pillow": {
        "1.0": {
            "PIL.*:": "Image ImageChops ImageDraw ImageEnhance ImageFilter ImageFont ImageOps",
        },
        "7.0": {"PIL:__version__": "PIL.PILLOW_VERSION PIL.Image.VERSION"},
        "10.0": {
            "PIL.Image:BICUBIC": "PIL.Image.CUBIC",
            "PIL.Image:BILINEAR": "PIL.Image.LINEAR",
            "PIL.Image:LANCZOS": "PIL.Image.ANTIALIAS",
            "PIL.Image:frombytes": "PIL.Image.fromstring",
        },
    },
    "scikit-learn": {
        "0.20": {
            "sklearn.discriminant_analysis:": "sklearn.lda sklearn.qda",
            "sklearn.discriminant_analysis:LinearDiscriminantAnalysis": "sklearn.lda.LDA",
            "sklearn.discriminant_analysis:QuadraticDiscriminantAnalysis": "sklearn.qda.QDA",
            "sklearn.model_selection:": (
                "sklearn.cross_validation sklearn.grid_search sklearn.learning_curve"
            ),
            _OWN + "learning:*": (
                within("sklearn.cross_validation", _SPLITS)
                + " sklearn.decomposition.RandomizedPCA sklearn.mixture.GMM"
            ),
        },
        "0.22": {_OWN + "learning:*": "sklearn.preprocessing.Imputer"},
        "0.23": {
            "joblib:": "sklearn.externals.joblib",
            "six:": "sklearn.externals.six",
            "sklearn.metrics:accuracy_score": "sklearn.metrics.jaccard_similarity_score",
            _OWN + "learning:": "sklearn.utils.linear_assignment_",
        },
        "0.24": {
            "sklearn.cluster:": "sklearn.cluster.dbscan_ sklearn.cluster.k_means_",
            "sklearn.datasets:": "sklearn.datasets.base sklearn.datasets.samples_generator",
            "sklearn.decomposition:": within(
                "sklearn.decomposition",
                "base factor_analysis fastica_ incremental_pca kernel_pca nmf online_lda pca "
                "sparse_pca truncated_svd",
            ),
            "sklearn.ensemble:": within(
                "sklearn.ensemble",
                "bagging base forest gradient_boosting iforest voting_classifier weight_boosting",
            ),
            "sklearn.feature_extraction.text:": "sklearn.feature_extraction.stop_words",
            "sklearn.linear_model:": within(
                "sklearn.linear_model",
                "base bayes coordinate_descent huber least_angle logistic omp passive_aggressive "
                "perceptron ransac ridge stochastic_gradient theil_sen",
            ),
            "sklearn.manifold:": "sklearn.manifold.t_sne",
            "sklearn.metrics:": within(
                "sklearn.metrics", "classification ranking regression scorer"
            ),
            "scipy.special:*": "sklearn.utils.extmath.logsumexp",
            "sklearn.metrics:calinski_harabasz_score": "sklearn.metrics.calinski_harabaz_score",
            "sklearn.neighbors:": "sklearn.neighbors.base",
            "sklearn.neural_network:": "sklearn.neural_network.multilayer_perceptron",
            "sklearn.preprocessing:": (
                "sklearn.preprocessing.data sklearn.preprocessing.imputation "
                "sklearn.preprocessing.label"
            ),
            "sklearn.svm:": "sklearn.svm.classes",
            "sklearn.tree:": "sklearn.tree.tree",
            "sklearn.utils._testing:": "sklearn.utils.testing",
            "sklearn.utils:_safe_indexing": "sklearn.utils.safe_indexing",
        },
        "1.2": {
            "sklearn.metrics:*": "sklearn.neighbors.DistanceMetric",
            _OWN + "learning:*": within(
                "sklearn.metrics",
                "plot_confusion_matrix plot_precision_recall_curve plot_roc_curve",
            ),
        },
    },
    "SciPy": {
        "1.3": {
            "scipy.special:*": within("scipy.misc", "comb factorial factorial2 logsumexp"),
            _OWN + "images:*": (
                within(
                    "scipy.misc",
                    "bytescale fromimage imread imresize imrotate imsave toimage",
                )
                + " scipy.ndimage.imread"
            ),
        },
        "1.4": {
            "numpy:*": within(
                "scipy",
                "absolute all allclose amax amin any append arange arccos arcsin arctan "
                "arctan2 argmax argmin argsort array asarray average bincount c_ ceil clip "
                "column_stack concatenate conj convolve copy corrcoef cos cosh cov cross "
                "cumprod cumsum delete diag diff dot einsum empty equal exp expand_dims eye "
                "fabs finfo flatnonzero fliplr flipud float32 float64 floor genfromtxt "
                "gradient histogram hstack hypot identity imag inf inner int32 int64 interp "
                "invert isfinite isinf isnan isreal kron linspace loadtxt log log10 log2 "
                "logical_and logical_not logical_or logspace maximum mean median meshgrid "
                "mgrid minimum mod multiply nan nanmax nanmin ndarray nonzero ones "
                "ones_like outer pad percentile pi poly1d polyfit polyval power r_ random "
                "ravel real repeat reshape resize roll savetxt searchsorted shape sign sin "
                "sinh size sort split sqrt square squeeze std sum swapaxes take tan tanh "
                "tensordot tile trace transpose tril triu uint8 unique unravel_index vander "
                "var vectorize vstack where zeros zeros_like",
            ),
            "numpy.random:*": "scipy.rand scipy.randn",
        },
        "1.8": {
            "numpy:nanmean": "scipy.stats.nanmean",
            "numpy:nanmedian": "scipy.stats.nanmedian",
            "numpy:nanstd": "scipy.stats.nanstd",
        },
        "1.9": {
            _OWN + "science:*": "scipy.stats.itemfreq scipy.stats.median_absolute_deviation",
        },
        "1.11": {
            "numpy:*": within("scipy.linalg", "tri tril triu"),
            "numpy.fft:*": "scipy.ifft",
            "scipy.linalg:pinv": "scipy.linalg.pinv2",
            "scipy.signal.windows:*": within(
                "scipy.signal",
                "barthann bartlett blackman blackmanharris bohman boxcar chebwin cosine "
                "exponential flattop gaussian general_gaussian hamming hann kaiser nuttall parzen "
                "triang tukey",
            ),
            "scipy.signal.windows:hann": "scipy.signal.hanning",
            "scipy.special:betainc": "scipy.stats.betai",
            "scipy.stats:binomtest": "scipy.stats.binom_test",
            "scipy.stats:gibrat": "scipy.stats.gilbrat",
            "scipy.stats:weibull_max": "scipy.stats.frechet_l",
            "scipy.stats:weibull_min": "scipy.stats.frechet_r",
        },
        "1.12": {
            "scipy.datasets:*": within("scipy.misc", "ascent electrocardiogram face"),
            _OWN + "science:*": within("scipy.misc", "central_diff_weights derivative"),
        },
        "1.14": {
            "scipy.integrate:cumulative_trapezoid": "scipy.integrate.cumtrapz",
            "scipy.integrate:simpson": "scipy.integrate.simps",
            "scipy.integrate:trapezoid": "scipy.integrate.trapz",
        },
        "1.15": {_OWN + "science:*": within("scipy.signal", "cwt morlet ricker")},
    },
    "six": {"1.17": {"pickle:": "six.moves.cPickle"}},
}

# Names without a replacement: the release that removed them, and the reason or the remedy.
UNSERVED: Mapping[str, tuple[str, str]] = {
    "pandas.Panel": ("pandas 0.25", "a DataFrame with a MultiIndex is the successor"),
    "scipy.misc.imfilter": ("SciPy 1.2", "PIL.ImageFilter has the filters"),
    "scipy.misc.lena": (
        "SciPy 0.17",
        "its licence did not allow to share it; use scipy.datasets.ascent() or another image",
    ),
    "scipy.weave": ("SciPy 0.19", "it compiled C++ for Python 2"),
    "sklearn.datasets.fetch_mldata": (
        "scikit-learn 0.22",
        "its server, mldata.org, is gone; use sklearn.datasets.fetch_openml('mnist_784')",
    ),
    "sklearn.datasets.load_boston": (
        "scikit-learn 1.2",
        "its authors removed the data for ethical reasons; use another data set, such as "
        "sklearn.datasets.fetch_california_housing()",
    ),
    "sklearn.gaussian_process.GaussianProcess": (
        "scikit-learn 0.20",
        "GaussianProcessRegressor is the successor",
    ),
    "sklearn.hmm": ("scikit-learn 0.17", "the package hmmlearn is the successor"),
    **{
        f"sklearn.mixture.{name}": ("scikit-learn 0.20", "BayesianGaussianMixture is the successor")
        for name in ("DPGMM", "VBGMM")
    },
    "sklearn.neighbors.LSHForest": ("scikit-learn 0.21", "NearestNeighbors is the successor"),
}

# Packages that need a TensorFlow that is prepared for the script.
ON_TENSORFLOW = ("keras",)

# Modules to which a function `install` adds names when a script imports them.
PREPARED: Mapping[str, str] = {
    "PIL.ImageDraw": _OWN + "images",
    "PIL.ImageFont": _OWN + "images",
    "matplotlib.pyplot": _OWN + "plots",
    "numpy": _OWN + "arrays",
    "pandas": _OWN + "frame_methods",
    "pylab": _OWN + "plots",
    "scipy.sparse": _OWN + "learning",
    "sklearn.feature_extraction.text": _OWN + "learning",
}
