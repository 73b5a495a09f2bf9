"""Expressions of graphs in the words of steps, which compute with tensors, also without a graph."""

from __future__ import annotations

import ast
from typing import Any

from compat.scripts.migrating.steps import estimators
from compat.scripts.migrating.steps.kinds import Kinds, default_name, last, tensorflow
from compat.scripts.migrating.steps.pieces import Pieces, used
from compat.scripts.rules.program import LOOSE, Edit, Program
from compat.scripts.source import conversion, literals, scopes

_STEP = "train.global_step"
_SUMMARIES = ("summary", "histogram", "scalar")
_OPENS = ("managed_session", "prepare_or_wait_for_session", "MonitoredTrainingSession")


def written(program: Program, tf: str) -> Program:
    """Returns a program with such expressions in the words of steps."""
    program = program.after(_apart(program, tf))
    edits = [*_names(program), *_in_place(program), *_sizes(program, tf), *_steps(program, tf)]
    program = program.after(edits)
    return program.after(_evaluations(program, tf))


def in_module(filename: str, text: str) -> str:
    """Returns the text of a module of such a program, as either runtime takes it."""
    if "import compat.v1 as " not in text:
        return text
    program = Program(conversion.Source(filename, text, False), marked=True)
    sizes, ours = _sizes(program, tensorflow(program)), estimators.written(program)
    lines = [Edit(program.head(), program.head(), "import compat\n")] if ours else []
    return program.edited([*lines, *ours, *_names(program), *_in_place(program), *sizes])


def _apart(program: Program, tf: str) -> list[Edit]:
    """Writes `x, y = tf.placeholder(...), tf.placeholder(...)` as an assignment of each."""
    kinds, pieces = Kinds(program, tf), Pieces(program)
    edits = []
    for node in program.nodes(ast.Assign):
        targets, values = (getattr(n, "elts", []) for n in (node.targets[0], node.value))
        is_each = len(targets) == len(values) and len(node.targets) == 1
        alone = pieces.alone(node)
        if not (is_each and any(map(kinds.is_input, values)) and alone):
            continue
        if not scopes.bound([node]) & used(node.value):
            indent = program.text[alone[0] : program.span(node)[0]]
            pairs = [" = ".join(map(program.expression, pair)) for pair in zip(targets, values)]
            edits.append(Edit(*program.span(node), f"\n{indent}".join(pairs)))
    return edits


def _names(program: Program) -> list[Edit]:
    """Names summaries by `variable.name`: only in a graph has a variable an `op`."""
    calls = [c for c in program.nodes(ast.Call) if last(c).endswith(_SUMMARIES) and c.args]
    return [
        Edit(program.span(node.value.value)[1], program.span(node)[1], '.name.partition(":")[0]')
        for call in calls
        for node in ast.walk(call.args[0])
        if isinstance(node, ast.Attribute) and node.attr == "name"
        if isinstance(node.value, ast.Attribute) and node.value.attr == "op"
    ]


def _in_place(program: Program) -> list[Edit]:
    """Writes `labels -= 1` of a variable as `labels = labels - 1`, which makes a tensor of it."""
    edits: list[Edit] = []
    for node in program.nodes(ast.AugAssign):
        made = [s for s in program.nodes(ast.Assign) if scopes.bound([s]) & scopes.bound([node])]
        home = program.enclosing(node)
        made = [s.value for s in made if program.enclosing(s) is home]
        calls = [value for value in made if isinstance(value, ast.Call)]
        if any(last(call).lower().endswith("variable") for call in calls):
            start, end = program.between(node.target, node.value)
            word, sign = program.expression(node.target), program.text[start:end].strip()[:-1]
            edits.append(Edit(start, end, f" = {word} {sign} "))
            if isinstance(node.value, LOOSE):
                place = program.span(node)[1]
                edits += [Edit(end, end, "("), Edit(place, place, ")")]
    return edits


def _sizes(program: Program, tf: str) -> list[Edit]:
    """Writes `x.get_shape()[1].value` for both runtimes: the modern one has numbers in shapes."""
    assigned = [node for node in program.nodes(ast.Assign) if _is_shape(node.value)]
    shapes = scopes.bound(assigned) - scopes.bound(program.nodes(ast.stmt), without=assigned)
    return [
        Edit(*program.span(node), f"{tf}.dimension_value({program.expression(node.value)})")
        for node in program.nodes(ast.Attribute)
        if node.attr == "value" and isinstance(node.value, ast.Subscript)
        if _is_shape(node.value.value) or getattr(node.value.value, "id", "") in shapes
    ]


def _is_shape(node: Any) -> bool:
    name = last(node) if isinstance(node, ast.Call) else getattr(node, "attr", "")
    return name in ("get_shape", "shape") and not getattr(node, "args", [])


def _steps(program: Program, tf: str) -> list[Edit]:
    """Writes `tf.train.global_step(sess, step)` as what it does: `sess.run(step)`."""
    calls = [c for c in program.nodes(ast.Call) if literals.dotted(c.func) == f"{tf}.{_STEP}"]
    return [
        Edit(*program.span(call), "{}.run({})".format(*map(program.expression, call.args)))
        for call in calls
        if len(call.args) == 2 and not call.keywords
    ]


def _evaluations(program: Program, tf: str) -> list[Edit]:
    """Writes `loss.eval(feed, session=sess)` as `sess.run(loss, feed)`, as where it is the default.

    Sessions of supervisors alone: plain ones are followed where they are opened by one.
    """
    assigned, kinds = program.nodes(ast.Assign), Kinds(program, tf)
    items = [(item, block) for block in program.nodes(ast.With) for item in block.items]
    opened = [(node.targets[0], node.value) for node in assigned]
    opened += [(item.optional_vars, item.context_expr) for item, _ in items]
    made = [(t, v) for t, v in opened if isinstance(v, ast.Call) and last(v) in _OPENS]
    sessions = {target.id for target, _ in made if isinstance(target, ast.Name)}
    built = scopes.bound([n for n in assigned if kinds.builds(n.value)]) - sessions
    edits: list[Edit] = []
    defaults: dict[ast.AST, str] = {}
    for item, block in items:
        name = default_name(item.context_expr)
        if name in sessions:  # Which on the modern runtime is none that TensorFlow knows.
            edits.append(Edit(*program.span(item.context_expr), f"{tf}.device(None)"))
            defaults.update((n, name) for statement in block.body for n in ast.walk(statement))
    for call in program.nodes(ast.Call):
        owner: Any = getattr(call.func, "value", None)
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        session = getattr(given.get("session"), "id", "") or defaults.get(call, "")
        is_own = isinstance(owner, ast.Name) and owner.id in built and session in sessions
        if is_own and last(call) in ("eval", "run"):
            feed = [*call.args[:1], *([given["feed_dict"]] if "feed_dict" in given else [])]
            words = ", ".join(map(program.expression, [owner, *feed]))
            edits.append(Edit(*program.span(call), f"{session}.run({words})"))
    return edits
