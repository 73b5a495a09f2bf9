"""What the nodes of a program are: blocks and functions that build, updates, sessions."""

from __future__ import annotations

import ast
from typing import Any

from compat.errors import UserError
from compat.scripts.rules.program import Program
from compat.scripts.source import literals, scopes

TRAINS = ("minimize", "apply_gradients")
MAKES_VARIABLE = ("Variable", "get_variable")
PLAIN = ("Session", "InteractiveSession")
# What queues of input are made by, in tf.train.
INPUT = (
    "string_input_producer",
    "batch",
    "shuffle_batch",
    "input_producer",
    "slice_input_producer",
)
# What is called on a session, or makes one: the graph is complete before it.
_SESSIONS = ("Supervisor", *PLAIN)
_SESSION_PARTS = ("Hook", "MonitoredSession", "TrainingSession", "Scaffold", "SessionCreator")
# What is used with a session, and no part of its graph.
_TOOLS = ("train.Saver", "train.SummaryWriter", "summary.FileWriter")
# What has no part in a graph.
_NOT_BUILT = (
    *("app", "flags", "gfile", "logging", "test", "train.ClusterSpec", "train.Server"),
    *("Graph", "ConfigProto", "GPUOptions", "RunOptions", "RunMetadata", "set_random_seed"),
    *("Session", "InteractiveSession"),
    *("errors", "contrib.learn.datasets", "reset_default_graph", "summary.FileWriter"),
    *("train.SummaryWriter", "train.Coordinator", "train.Supervisor"),
    *("train.start_queue_runners", "train.latest_checkpoint", "train.get_checkpoint_state"),
    *("keras.datasets", "keras.preprocessing", "keras.utils.to_categorical", "get_default_graph"),
)


class Kinds:
    """Tells what the nodes of a program are.

    Attributes:
      own: the names of the program's own functions that build, and classes that train.
      objects: the names of objects of its own classes.
      run_alone: the names of operations, of which the program takes no result.
    """

    def __init__(self, program: Program, tf: str) -> None:
        self.tf = tf
        functions = program.nodes(ast.FunctionDef)
        self.run_alone = {
            _first_name(statement.value)
            for statement in program.nodes(ast.Expr)
            if isinstance(statement.value, ast.Call) and last(statement.value) == "run"
        } - {""}
        for statement in program.nodes(ast.Assign):
            self.run_alone.update(_dropped(statement))
        assigned = program.nodes(ast.Assign)
        inputs = [node for node in assigned if self.is_input(node.value)]
        graphs = [node for node in assigned if self.called(node.value) == "Graph"]
        self._inputs, self._graphs = scopes.bound(inputs), scopes.bound(graphs)
        self.own: set[str] = set()
        self._classes = {c.name for c in program.nodes(ast.ClassDef) if self._updates(c)}
        self.own = {f.name for f in functions if self.builds(f)} | self._classes
        self._training = {f.name for f in functions if self._updates(f)} | self._classes
        made = [s for s in assigned if isinstance(s.value, ast.Call)]
        known = {c.name for c in program.nodes(ast.ClassDef)}
        self.objects = scopes.bound(t for s in made if last(s.value) in known for t in s.targets)

    def called(self, node: ast.AST) -> str:
        """Returns what a call calls of TensorFlow, such as "train.Saver", or ""."""
        name = literals.dotted(node.func) if isinstance(node, ast.Call) else ""
        name = name[len(self.tf) + 1 :] if name.startswith(self.tf + ".") else ""
        return "train.Server" if name == "distribute.Server" else name

    def builds(self, node: ast.AST) -> bool:
        """Whether a node calls TensorFlow for more than flags, files, servers and sessions."""
        names = filter(None, map(self.called, ast.walk(node)))
        calls = {last(call) for call in ast.walk(node) if isinstance(call, ast.Call)}
        return bool(self.own & calls) or not all(map(_is_apart, names))

    def is_apart(self, node: ast.AST) -> bool:
        """Whether a node calls what has no part in a graph, such as `tf.ConfigProto`."""
        name = self.called(node)
        return bool(name) and _is_apart(name)

    def is_input(self, node: ast.AST) -> bool:
        """Whether a node makes a placeholder."""
        return self.called(node) in ("placeholder", "sparse_placeholder")

    def is_block(self, node: ast.AST) -> bool:
        """Whether an expression is `tf.device(...)`, or the graph that a program is built in."""
        return self.called(node) in ("device", "Graph") or self.is_graph(node)

    def is_around(self, block: ast.With, functions: set[str]) -> bool:
        """Whether a block calls one of some functions, and builds nothing beside."""
        calls = [n for s in block.body for n in ast.walk(s) if isinstance(n, ast.Call)]
        others = [call for call in calls if last(call) not in functions]
        return len(others) < len(calls) and not any(map(self.builds, others))

    def is_scope(self, item: ast.withitem) -> bool:
        """Whether a block gives names in it a beginning."""
        called = self.called(item.context_expr) in ("name_scope", "variable_scope")
        return called and bool(item.context_expr.args)  # type: ignore[attr-defined]

    def is_graph(self, node: ast.AST) -> bool:
        """Whether an expression makes a graph of the program the default one."""
        made = as_default(node)
        is_own = getattr(made, "id", "") in self._graphs
        return is_own or (made is not None and self.called(made) == "Graph")

    def trains(self, node: ast.AST, by_class: bool = True) -> bool:
        """Whether a node makes what updates the variables, or calls a function that does.

        Or, `by_class`, an object of a class that does.
        """
        calls = {last(n) for n in ast.walk(node) if isinstance(n, ast.Call)}
        calls -= set() if by_class else self._classes
        if self._updates(node) or not self._training.isdisjoint(calls):
            return True
        # By a function of another module, perhaps.
        return not self._training and bool(self.run_alone & scopes.bound([node]))

    def is_tool(self, statement: ast.stmt) -> bool:
        """Whether a statement assigns a saver, a writer, or what is fed to placeholders."""
        value = statement.value if isinstance(statement, ast.Assign) else None
        keys = value.keys if isinstance(value, ast.Dict) else []
        feeds = bool(keys) and all(getattr(key, "id", "") in self._inputs for key in keys)
        return feeds or (value is not None and self.called(value) in _TOOLS)

    def uses_session(self, node: ast.AST) -> bool:
        """Whether a node makes or describes a session."""
        for call in ast.walk(node):
            name = self.called(call).rpartition(".")[2]
            if name in _SESSIONS or name.endswith(_SESSION_PARTS):
                return True
        return False

    def makes_session(self, call: ast.Call) -> bool:
        """Whether what is called makes a session that `compat` has as well."""
        return self.called(call).rpartition(".")[2] == "Supervisor" or self.is_monitored(call)

    def is_monitored(self, call: ast.Call) -> bool:
        """Whether a call makes a monitored session, which fetches values of steps for hooks."""
        return self.called(call).endswith(("MonitoredSession", "TrainingSession"))

    def _updates(self, node: ast.AST) -> bool:
        return any(isinstance(n, ast.Call) and last(n) in TRAINS for n in ast.walk(node))


def _is_apart(name: str) -> bool:
    return any(f"{name}.".startswith(f"{other}.") for other in _NOT_BUILT)


def as_default(node: Any) -> Any:
    """Returns what an expression makes the default, `graph` in `graph.as_default()`, or None."""
    method: Any = getattr(node, "func", None)
    return method.value if getattr(method, "attr", "") == "as_default" else None


def default_name(node: Any) -> str:
    """Returns the name of what an expression makes the default, or ""."""
    return getattr(as_default(node), "id", "")


def last(call: Any) -> str:
    """Returns the last word of what is called."""
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def words(call: ast.Call) -> list[ast.expr]:
    """Returns the arguments of a call."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _first_name(call: ast.Call) -> str:
    return call.args[0].id if call.args and isinstance(call.args[0], ast.Name) else ""


def _dropped(statement: ast.Assign) -> list[str]:
    """Returns the operations in `_, loss = session.run([train, loss])`."""
    call, names = statement.value, getattr(statement.targets[0], "elts", [])
    is_run = isinstance(call, ast.Call) and last(call) == "run" and call.args
    fetched = getattr(call.args[0], "elts", []) if is_run else []  # type: ignore[attr-defined]
    return [
        fetch.id
        for name, fetch in zip(names, fetched)
        if isinstance(name, ast.Name) and name.id == "_" and isinstance(fetch, ast.Name)
    ]


def made_by_run(call: Any, sessions: set[str]) -> list[ast.Call]:
    """Returns what a call of a session's `run` calls to make what it fetches."""
    is_run = isinstance(call, ast.Call) and last(call) == "run"
    if not is_run or literals.dotted(call.func).rpartition(".")[0] not in sessions:
        return []
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "fetches")]
    nodes = [node for value in given for node in getattr(value, "elts", [value])]
    return [node for node in nodes if isinstance(node, ast.Call)]


def tensorflow(program: Program) -> str:
    """Returns the name under which a program imports `compat.v1`, or raises `UserError`."""
    name = program.source.filename
    aliases = [alias for node in program.nodes(ast.Import) for alias in node.names]
    for alias in aliases:
        if alias.name == "compat.v1" and alias.asname:
            return str(alias.asname)
    today = next((a.asname for a in aliases if a.name == "tensorflow" and a.asname), None)
    if today:  # It is left as it is: all that it uses, TensorFlow still has.
        raise UserError(
            f"{name} uses nothing that TensorFlow 2 lacks by that name; write `{today}.` for "
            f"`{today}.compat.v1.` in it, as TensorFlow 1 had it"
        )
    raise UserError(
        f"{name} does not import TensorFlow under a name; write `import tensorflow as tf`"
    )
