"""Operations on arrays that NumPy took until 2017 or later, as scripts use them; no TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import RunScript

pytestmark = pytest.mark.once

SET_UP = """
import array, math, threading
from xml.etree import ElementTree
import numpy as np
from math import sqrt
one, box = np.array([2.25]), np.array([[3.0]])
text, zeros, kept = "loss %.2f", np.zeros(3), {}
"""
# An expression or a statement of a script, and what the script then prints of it.
NUMBERS = (
    ("'%f' % one", "2.250000"),
    ("'%d steps, %.1f' % (box, one)", "3 steps, 2.2"),
    ("'%s of %d' % (one, box)", "[2.25] of 3"),
    ("'step %d: ' % 3 + text % one", "step 3: loss 2.25"),
    ("'%(loss).1f' % {'loss': one}", "2.2"),
    ("'%.1f' % np.matrix([[3]])", "3.0"),
    ("'%f' % np.ones(2)", "TypeError"),
    ("'%d' % None", "TypeError"),
    ("7 % 4", "3"),
    ("float(one)", "2.25"),
    ("int(box)", "3"),
    ("float(np.ones(2))", "TypeError"),
    ("round(one, 1)", "2.2"),
    ("complex(box)", "(3+0j)"),
    ("list(map(float, [one, box]))", "[2.25, 3.0]"),
    ("(math.sqrt(one), sqrt(one), math.isnan(box))", "(1.5, 1.5, False)"),
    ("zeros[0] = one; print(zeros)", "[2.25 0.   0.  ]"),
    ("zeros[1] += box; print(zeros)", "[2.25 3.   0.  ]"),
    ("kept['loss'] = one; print(kept)", "{'loss': array([2.25])}"),
)
RAGGED = (
    ("np.array([[1, 2], [3]]).tolist()", "[[1, 2], [3]]"),
    ("np.array([[np.ones(2), 1, True], [np.ones(2), 0, False]])[:, 1].tolist()", "[1, 0]"),
    ("np.resize([1.0, one], [2, 1]).astype(float).tolist()", "[[1.0], [2.25]]"),
    ("np.reshape([box, 1.0], newshape=[1, 2]).astype(float).tolist()", "[[3.0, 1.0]]"),
    ("np.ravel([[1, 2], [3]]).tolist()", "[[1, 2], [3]]"),
)
METHODS = (
    ("one.tostring() == one.tobytes()", "True"),
    ("one.ptp() + np.arange(6).reshape(2, 3).ptp(axis=0).sum()", "9.0"),
    ("np.dtype(np.uint32).newbyteorder('>')", ">u4"),
    ("np.ones(1, '<i2').newbyteorder()[0]", "256"),
    ("zeros.itemset(2, 5); print(zeros)", "[0. 0. 5.]"),
    ("zeros.itemset((1,), 7); print(zeros)", "[0. 7. 5.]"),
    ("threading.Thread().isAlive()", "False"),
    ("len(ElementTree.fromstring('<a><b/></a>').getchildren())", "1"),
    ("array.array('b', [1]).tostring()", "b'\\x01'"),
    ("bool(np.ones(1)) if not np.array([]) else 0", "True"),
)
GROUPS = {"numbers": NUMBERS, "ragged": RAGGED, "methods": METHODS}


@pytest.mark.parametrize("group", GROUPS)
def test_arrays_do_what_they_did(group: str, run_script: RunScript) -> None:
    lines = [SET_UP]
    for code, _ in GROUPS[group]:
        shown = code if "print(" in code else f"print({code})"
        lines += ["try:", f"    {shown}", "except Exception as e:", "    print(type(e).__name__)"]
    ran = run_script("\n".join(lines))
    assert ran.code == 0, ran.err
    done = dict(zip((code for code, _ in GROUPS[group]), ran.out.splitlines()))
    assert done == dict(GROUPS[group])


def test_python_2_rounds_halves_away_from_zero(run_script: RunScript) -> None:
    ran = run_script(
        """
        import numpy as np
        print round(2.5), round(-2.5), round(2.675, 2), round(123.456, -1), round(0.1, 30)
        print round(1e300), int(round(np.array([3.5])))
        """
    )
    assert ran.out == "3.0 -3.0 2.67 120.0 0.1\n1e+300 4\n"
