"""Habits of scripts around NumPy, pandas and other packages, with what they printed."""

from __future__ import annotations

# A package, what a script imports, and its expressions or statements with what they print.
PYTHON = (
    """
    import base64, collections, distutils, fractions, imp, inspect, itertools, os, platform, random
    import imghdr, string, sys, time, types, urllib, yaml
    from PIL import Image
    import os.path as path
    from collections import Mapping, OrderedDict
    from distutils.version import LooseVersion
    """,
    ("isinstance({}, Mapping) and collections.Iterable.__name__", "Iterable"),
    ("time.clock() > 0", "True"),
    ("inspect.getargspec(lambda a, b=1, *c: 0).defaults", "(1,)"),
    ("string.letters[:2] + string.join(['a', 'b'], '-')", "aba-b"),
    ("'ab'.translate(string.maketrans('a', 'c'))", "cb"),
    ("list(itertools.izip([1], [2]))", "[(1, 2)]"),
    ("string.zfill('7', 3) + string.joinfields(['a', 'b'], '-')", "007a-b"),
    ("isinstance([1], types.ListType) and types.StringType.__name__", "str"),
    ("Image.new('L', (1, 1)).save('x.png'); print(imghdr.what('x.png'))", "png"),
    ("fractions.gcd(4, 6)", "2"),
    ("os.errno.ENOENT", "2"),
    ("sys.maxint == sys.maxsize", "True"),
    ("sys.setdefaultencoding('utf-8')", "None"),
    ("base64.decodestring(base64.encodestring(b'a'))", "b'a'"),
    ("len(platform.linux_distribution())", "3"),
    ("urllib.quote('a b')", "a%20b"),
    ("len(random.sample({1, 2, 3}, 2))", "2"),
    ("x = [1, 2, 3]; random.shuffle(x, lambda: 0.0); print(x)", "[2, 3, 1]"),
    ("LooseVersion('1.2') < LooseVersion('1.10')", "True"),
    ("imp.load_source('other', 'sibling.py').np.int(3)", "3"),
    ("yaml.load('a: [1]'), yaml.load('b: 1', Loader=yaml.BaseLoader)", "{'a': [1]} {'b': '1'}"),
)
NUMPY = (
    """
    import numpy as np
    import numpy.random as rnd
    from numpy import float as number
    from numpy.fft.helper import fftshift
    from numpy.lib.nanfunctions import nanmax
    from numpy.lib.shape_base import expand_dims
    from numpy.lib.twodim_base import triu_indices
    from numpy.linalg.linalg import norm
    """,
    ("(np.int, np.bool is bool, number)", "(<class 'int'>, True, <class 'float'>)"),
    ("(np.Inf, np.NaN, np.NINF, np.float_.__name__)", "(inf, nan, -inf, 'float64')"),
    ("np.math.sqrt(4) + len(np.warnings.filters) * 0", "2.0"),
    ("np.AxisError.__name__", "AxisError"),
    ("np.product([2, 3]) + np.rank([1]) + np.alen([1])", "8"),
    ("np.alltrue([True]) and np.sometrue([True]) and np.in1d([1], [1])[0]", "True"),
    ("float(np.trapz([1, 2]))", "1.5"),
    ("np.asfarray([1]).dtype", "float64"),
    ("expand_dims([1], 0).shape, len(triu_indices(2)), nanmax([1.0, np.nan])", "(1, 1) 2 1.0"),
    ("fftshift([1, 2]), norm([3, 4]), np.linalg.linalg.det([[2]])", "[2 1] 5.0 2.0"),
    ("np.find_common_type([np.int32, np.float64], [])", "float64"),
    ("np.array([[1], [1, 2]]).dtype", "object"),
    ("np.array([np.ones(1), 2.0], np.float32)", "[1. 2.]"),
    ("np.array([[1.0], [1.0, 2.0]], np.float32)", "ValueError"),
    ("np.asarray([[1], [1, 2]]).shape", "(2,)"),
    ("np.array(3.0, copy=False)", "3.0"),
    ("np.array([300, -1], np.uint8)", "[ 44 255]"),
    ("np.mean([1.0, np.array([2.0])])", "[1.5]"),
    ("np.sum(x for x in [1, 2])", "3"),
    ("np.vstack(x for x in ([1], [2])).shape", "(2, 1)"),
    ("np.hstack(map(list, [[1], [2]]))", "[1 2]"),
    ("np.zeros((2.0, 1)).shape + np.full(3.0, 1).shape + rnd.normal(size=2.0).shape",
     "(2, 1, 3, 2)"),
    ("np.zeros(2.5)", "TypeError"),
    ("(np.fastCopyAndTranspose(np.eye(2)).shape, np.nbytes[np.int32])", "((2, 2), 4)"),
    ("np.histogram([1, 2], bins=1, normed=True)[0]", "[1.]"),
    ("int(np.percentile([1, 3], 0, interpolation='nearest'))", "1"),
    ("np.reshape([1, 2], newshape=(2, 1)).shape", "(2, 1)"),
    ("np.set_printoptions(threshold=np.nan)", "None"),
    ("x = np.ones(2); print('whole' if x == None or x == 'auto' else 'other', not x != None)",
     "other False"),
    ("x = np.array(['a']); print('same' if x == 'a' and x is not None else 'other')", "same"),
    ("np.fromstring(b'ab', np.uint8)", "[97 98]"),
    ("rnd.random_integers(1)", "1"),
    ("np.save('a.npy', {'w': 1}) or np.load('a.npy').item()", "{'w': 1}"),
    ("[np.float32(0.5)]", "[0.5]"),
    ("from other import Inf, product, kind; print(Inf, product([2, 3]), kind)",
     "inf 6 <class 'bool'>"),
    ("x = np.ones([1, 2]); x[:, 0][x[:, 1] > 0] = 5; print(x.tolist())", "[[5.0, 1.0]]"),
)  # fmt: skip
SCIPY = (
    """
    import numpy as np
    import scipy, scipy.integrate, scipy.signal
    from scipy import misc, stats
    from scipy.interpolate import interp2d
    from scipy.misc import comb, imread, imresize, imsave, logsumexp
    import scipy.sparse
    from scipy.sparse.linalg import cg
    """,
    ("int(comb(4, 2))", "6"),
    ("scipy.zeros(2)", "[0. 0.]"),
    ("float(scipy.integrate.trapz([1, 2]))", "1.5"),
    ("scipy.signal.hann(3)", "[0. 1. 0.]"),
    ("scipy.sparse.csr_matrix([[1, 2]]).A.tolist()", "[[1, 2]]"),
    ("cg(np.eye(1), [2.0], tol=1e-3)[0]", "[2.]"),
    ("imsave('a.png', np.arange(12.0).reshape(3, 4)); print(imread('a.png')[0])", "[ 0 23 46 70]"),
    ("misc.imread('a.png', mode='RGB').shape", "(3, 4, 3)"),
    ("imresize(np.ones((4, 4, 3), np.uint8), (2, 3)).shape", "(2, 3, 3)"),
    # Numbers of SciPy 1.2.3.
    (
        "(scipy.fft([1.0, 2.0, 4.0]).round(3)[:2], scipy.fft.rfft([1.0, 2.0])[0].real)",
        "(array([ 7.+0.j   , -2.+1.732j]), 3.0)",
    ),
    ("(misc.derivative(lambda x, a: x**3 * a, 2.0, 0.1, 2, (2.0,), 5)).round(6)", "24.0"),
    ("misc.central_diff_weights(5).round(4)", "[ 0.0833 -0.6667  0.      0.6667 -0.0833]"),
    ("stats.itemfreq([3, 1, 3]).tolist()", "[[1, 1], [3, 2]]"),
    (
        "(scipy.signal.ricker(3, 2.0).round(4), abs(scipy.signal.morlet(5, 3.0)).round(4)[1])",
        "(array([0.4059, 0.6133, 0.4059]), 0.0055)",
    ),
    ("scipy.signal.cwt(np.arange(4.0), scipy.signal.ricker, [1, 2]).shape", "(2, 4)"),
    (
        "interp2d([0, 1], [0, 1], [[0, 1], [1, 2]], fill_value=-7)([0.5, 2], [0.5, 0.5]).tolist()",
        "[[1.0, -7.0], [1.0, -7.0]]",
    ),
    (
        "interp2d(range(5), range(4), np.sin(np.add.outer(np.arange(4.0) ** 2, range(5))), 'cubic')"
        "([0, 2], 1.5).round(6)",
        "[ 0.021869 -0.072123]",
    ),
)
SKLEARN = (
    """
    import numpy as np
    import sklearn.cross_validation as cv
    from sklearn import cross_validation, preprocessing
    from sklearn.datasets.samples_generator import make_blobs
    from sklearn.decomposition import RandomizedPCA
    from sklearn.externals import joblib
    from sklearn.lda import LDA
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.metrics import jaccard_similarity_score, mean_squared_error, plot_confusion_matrix
    from sklearn.base import clone
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import Lasso, LogisticRegression, Ridge, SGDClassifier
    points, groups = [[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]
    iris = load_iris(True)
    from sklearn.mixture import GMM
    from sklearn.svm import SVC
    from sklearn.utils.linear_assignment_ import linear_assignment
    """,
    (
        "plot_confusion_matrix(LDA().fit(points, groups), points, groups).confusion_matrix.sum()",
        "4",
    ),
    ("[test.tolist() for _, test in cv.KFold(4, n_folds=2)]", "[[0, 1], [2, 3]]"),
    ("len(cross_validation.StratifiedKFold([0, 1, 0, 1], n_folds=2))", "2"),
    ("len(list(cross_validation.KFold(n=4, n_folds=2)))", "2"),
    ("preprocessing.OneHotEncoder(3, sparse=False).fit_transform([[1]])", "[[0. 1. 0.]]"),
    ("mean_squared_error([1.0], [3.0], squared=False)", "2.0"),
    ("(SVC(2.0, 'linear').kernel, make_blobs(4, 3, 2)[0].shape)", "('linear', (4, 3))"),
    ("CountVectorizer().fit(['ab cd']).get_feature_names()", "['ab', 'cd']"),
    ("len(cross_validation.train_test_split([1, 2], [3, 4]))", "4"),
    ("preprocessing.Imputer().fit_transform([[1.0], [np.nan]]).tolist()", "[[1.0], [1.0]]"),
    ("linear_assignment(np.array([[1, 0], [0, 1]])).tolist()", "[[0, 1], [1, 0]]"),
    ("GMM(2).covariance_type + joblib.__name__ + RandomizedPCA(2).svd_solver",
     "diagjoblibrandomized"),
    ("float(jaccard_similarity_score([1, 2], [1, 3]))", "0.5"),
    ("(cv.KFold(4, n_folds=2).n_folds, cv.KFold(4, n_folds=2).n)", "(2, 4)"),
    # Numbers of scikit-learn 0.20.4.
    ("clone(Lasso(0.001, normalize=True)).fit(*iris).coef_.round(3)",
     "[-0.    -0.091  0.152  0.655]"),
    ("clone(Ridge(0.5, normalize=True)).fit(*iris).intercept_.round(3)", "-0.258"),
    ("clone(LogisticRegression('l1', C=2.0, solver='liblinear')).fit(*iris).coef_.round(1)[0]",
     "[ 0.   3.  -3.3  0. ]"),
    ("LogisticRegression(solver='lbfgs', multi_class='ovr', max_iter=1000).fit(*iris)"
     ".predict_proba(iris[0][60:61]).round(2)[0]", "[0.06 0.93 0.01]"),
    ("preprocessing.OneHotEncoder(categorical_features=[1]).fit_transform([[5.0, 0], [6.0, 2]])"
     ".toarray().tolist()", "[[1.0, 0.0, 5.0], [0.0, 1.0, 6.0]]"),
    ("(RandomForestClassifier(3, max_features='auto', random_state=0).fit(*iris).max_features,"
     " SGDClassifier(loss='log').loss)", "('sqrt', 'log_loss')"),
    ("(isinstance(SVC(), SVC), isinstance(LDA(), SVC), type('My', (SVC,), {})(C=3).C)",
     "(True, False, 3)"),
)  # fmt: skip
PANDAS = (
    """
    import io
    import pandas as pd
    from pandas.tools.plotting import scatter_matrix
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]}, index=["p", "q", "r"])
    """,
    ("frame.as_matrix(['a']).tolist()", "[[1.0], [2.0], [3.0]]"),
    ("(float(frame.ix[0, 'a']), frame.ix['q', 1], frame.ix[0:2, ['a']].shape)",
     "(1.0, 'y', (2, 1))"),
    ("frame.ix[0, 'a'] = 9; print(frame.a.tolist())", "[9.0, 2.0, 3.0]"),
    ("len(frame.append({'a': 4.0}, ignore_index=True))", "4"),
    ("[name for name, _ in frame.iteritems()]", "['a', 'b']"),
    ("frame.b.values", "['x' 'y' 'x']"),
    ("pd.get_dummies(frame.b).values.dtype", "uint8"),
    ("pd.read_csv(io.StringIO(u'a\\n1\\n1,2\\n3'), error_bad_lines=False).shape",
     "(2, 1)"),
    ("pd.read_csv(io.StringIO(u'1\\n2'), header=None, squeeze=True).tolist()", "[1, 2]"),
    ("pd.rolling_mean(frame.a, 2).tolist()[1:]", "[5.5, 2.5]"),
    ("pd.np.Inf", "inf"),
    ("(frame.drop('b', 1).shape, frame.mean().tolist(), frame.to_csv(line_terminator=';')[:5])",
     "((3, 1), [4.666666666666667], ',a,b;')"),
    ("frame.groupby('b').mean().a.tolist()", "[6.0, 2.0]"),
    ("pd.concat([frame, frame], 1, join_axes=[frame.index[:1]]).shape", "(1, 4)"),
    ("pd.Series([1, None]).fillna(method='ffill').tolist()", "[1.0, 1.0]"),
    ("pd.Series([1, 2], pd.date_range('2016', None, 2, 'H')).resample('D', 'sum').tolist()", "[3]"),
    ("(pd.ewma(frame.a, 2).size, frame.lookup(['p'], ['b']), frame.a.clip_upper(2.5).max())",
     "(3, array(['x'], dtype=object), 2.5)"),
    ("frame.rename_axis({'a': 'z'}, axis=1).convert_objects().columns.tolist()", "['z', 'b']"),
    ("x = frame.a.copy(); x.sort(); print(x.tolist())", "[2.0, 3.0, 9.0]"),
    ("frame['a'][frame['a'] > 5] = 1; print(frame.a.tolist())", "[1.0, 2.0, 3.0]"),
    ("frame.a['p'] = float('nan'); print(frame.a.isnull().tolist())", "[True, False, False]"),
    ("frame['a'].fillna(7, inplace=True); print(frame.a.tolist())", "[7.0, 2.0, 3.0]"),
    ("frame.a.replace(7, 8, inplace=True); print(frame.a.tolist())", "[8.0, 2.0, 3.0]"),
    ("x = frame[['a']].values; x[0] = 4; print(x[:2].tolist(), frame.a[0:1].tolist())",
     "[[4.0], [2.0]] [8.0]"),
    ("dates = pd.date_range('2016-01-03', None, 2); print(dates.weekofyear.tolist(),"
     " pd.Series(dates).dt.week.tolist())", "[53, 1] [53, 1]"),
    ("frame.select(lambda name: name == 'a', axis=1).columns.tolist()", "['a']"),
    ("x = pd.DataFrame({'a': [1, 2], 'b': [3, 4]}); x.values[x.values > 2] = 0; x.values[0, 0] += 4"
     "; x['b'].values[1] = 9; x.a.values[1:] = 7; print(x.values.tolist())", "[[5, 0], [7, 9]]"),
    ("x = pd.Series(['no', 'yes']); print(x.replace(['no', 'yes'], [0, 1]).dtype)", "int64"),
    ("x = pd.Series([None, True]); x.fillna(False, inplace=True); print(x.dtype)", "bool"),
    ("class Own: kept = lambda: 0; kept.__rows = [1]; kept.__rows[0] = 5; print(vars(kept))",
     "{'_Own__rows': [5]}"),
    ("kept = {'a': [1, 2]}; kept['a'][0] = 5; print(list(kept.values()))", "[[5, 2]]"),
)  # fmt: skip
IMAGES = (
    """
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.mlab as mlab
    import matplotlib.pyplot as plt
    from PIL import Image, ImageDraw, ImageFont
    """,
    ("Image.ANTIALIAS == Image.LANCZOS", "True"),
    ("len(ImageFont.load_default().getsize('a'))", "2"),
    ("len(ImageDraw.Draw(Image.new('L', (9, 9))).textsize('a'))", "2"),
    ("plt.style.use('seaborn-whitegrid')", "None"),
    ("plt.hold(True)", "None"),
    ("len(plt.gca().hist([1, 2], normed=1)) + len(plt.bar(left=[1], height=[2]))", "4"),
    ("round(float(mlab.bivariate_normal(0.0, 0.0)), 3)", "0.159"),
    ("plt.subplot(111, axisbg='w').set_axis_bgcolor('w')", "None"),
    ("plt.gca().set_color_cycle(['r'])", "None"),
    ("len(plt.plot([1], hold=True))", "1"),
    ("plt.figure().gca(projection='3d').name + plt.gca().name", "3d3d"),
    ("plt.yscale('log', nonposy='clip')", "None"),
    ("plt.cm.get_cmap('jet').name + plt.cm.spectral.name", "jetnipy_spectral"),
    ("round(float(mlab.normpdf(0.0, 0, 1)), 3)", "0.399"),
)
GROUPS = {
    "numpy": NUMPY,
    "PIL": IMAGES,
    "pandas": PANDAS,
    "python": PYTHON,
    "scipy": SCIPY,
    "sklearn": SKLEARN,
}
