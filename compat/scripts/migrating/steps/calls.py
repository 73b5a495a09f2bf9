"""Calls of a session on the tensors of a graph, which become calls on a step."""

from __future__ import annotations

import ast
from typing import Any, Iterator, NamedTuple

from compat.scripts.migrating.steps.graph import Graph
from compat.scripts.migrating.steps.kinds import last, words
from compat.scripts.migrating.steps.pieces import Pieces
from compat.scripts.migrating.steps.region import INITIALIZERS
from compat.scripts.rules.program import Remark
from compat.scripts.source import literals, scopes

_PLAIN = (ast.Assign, ast.AugAssign)
_ITERATES = ("enumerate", "zip", "len", "list", "tuple", "map")
# What is made of TensorFlow, and no value.
_NOT_FETCHED = ("Saver", "Optimizer", "Writer", "Hook", "QueueRunner", "Coordinator", "Scaffold")
_OUTSIDE = (
    "{name} is built outside of the graph, so it works with --runtime=legacy alone; build it there"
)
_AGAIN = (
    "{name} initializes variables again, so it works with --runtime=legacy alone; assign their "
    "first values in an operation of the graph"
)


class Fetch(NamedTuple):
    """A value that a session returns."""

    key: str  # Its name among the values of the step.
    text: str  # The expression that it is in the graph.
    is_operation: bool  # Whether a session returns None for it.
    runs: bool = False  # Whether it is a structure with an operation.

    def of(self, values: str) -> str:
        """Returns the expression that it is in the values of the step."""
        if self.is_operation:
            return f'{values}.get("{self.key}")'  # None, as a session returns for it.
        found = f'{values}["{self.key}"]'
        return f"int({found})" if self.key == "global_step" else found


class Call(NamedTuple):
    """A call `session.run(fetches, feed_dict)`."""

    node: ast.Call  # The call.
    fetches: list[Fetch]  # What it returns.
    is_list: bool  # Whether it returns a list of them.
    inputs: list[str]  # The placeholders that it feeds.
    arrays: str  # What it feeds, as text.


class Calls:
    """Finds the calls outside of a graph that can be rewritten.

    Attributes:
      found: these.
      feeds: dictionaries in variables, which become tuples: the node, and its new text.
      displays: statements that give what is fetched a name, which are not needed any longer.
      done: the names that are rewritten with them, as nodes.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._keys: dict[str, str] = {}  # Of structures, by their text.
        self._parents = graph.program.parents
        inside = {node for statement in graph.statements for node in ast.walk(statement)}
        self._parts = {*self._taken_apart(inside)}
        self._calls = [call for call in _runs(graph.scope) if call not in inside]
        self._kept: set[str] = set()  # Variables of calls that stay as they are.
        left: set[str] = set()
        while not self._kept or left - self._kept:
            self._kept |= left | {""}
            self.found: list[Call] = []
            self.feeds: dict[ast.Dict, str] = {}
            self.displays: list[ast.Assign] = []
            self.done: set[ast.AST] = set()
            for call in self._calls:
                self._add(call)
            found = {call.node for call in self.found}
            staying = [node for call in self._calls if call not in found for node in words(call)]
            left = {node.id for node in staying if isinstance(node, ast.Name)}

    def _add(self, call: ast.Call) -> None:
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        given.update(zip(("fetches", "feed_dict"), call.args))
        fetches, feed = self._displayed(given.get("fetches")), given.get("feed_dict")
        if fetches is None or set(given) - {"fetches", "feed_dict"} or len(call.args) > 2:
            return
        is_list = isinstance(fetches, (ast.List, ast.Tuple))
        nodes: Any = fetches.elts if isinstance(fetches, (ast.List, ast.Tuple)) else [fetches]
        found = [self._fetch(node) for node in nodes]
        if not found or None in found:
            return
        named = [fetch for fetch in found if fetch is not None]
        if literals.is_none(feed) if feed is not None else True:
            self._take(call, named, is_list, [], "", nodes)
        elif isinstance(feed, ast.Dict):
            inputs = self._inputs(feed)
            if inputs is not None:
                self._take(call, named, is_list, inputs, self._values(feed), [*nodes, *feed.keys])
        elif isinstance(feed, ast.Name):
            inputs = self._of_variable(feed.id)
            if inputs is not None:
                self._take(call, named, is_list, inputs, "*" + feed.id, nodes)

    def _taken_apart(self, inside: set[ast.AST]) -> Iterator[str]:
        """Yields what is iterated, and so no tensor, as the state of several cells."""
        for node in self.graph.program.nodes(ast.Name, ast.Attribute):
            parent: Any = self._parents[node]
            is_iterated = getattr(parent, "iter", None) is node or isinstance(parent, ast.Starred)
            is_given = isinstance(parent, ast.Call) and literals.dotted(parent.func) in _ITERATES
            if node not in inside and (is_iterated or is_given):
                yield literals.dotted(node)

    def legacy_only(self) -> Iterator[Remark]:
        """Yields remarks for elements of a dataset that are made elsewhere, and initializers."""
        for call in self.found:
            for fetch in call.fetches:
                made = self.graph.assignment(fetch.text)
                if made is not None and self.graph.called(made.value).endswith(INITIALIZERS):
                    yield Remark(call.node, _AGAIN.format(name=fetch.text))
        for name in self._fetched_outside():
            yield Remark(name, _OUTSIDE.format(name=name.id))

    def lacking(self, call: Call) -> list[str]:
        """Returns a value that a call fetches, and an input that it needs and is not fed; or []."""
        graph, pieces = self.graph, Pieces(self.graph.program)
        plain = [s for s, _ in graph.in_scopes(graph.statements, "") if isinstance(s, _PLAIN)]
        inputs = graph.placeholders.keys() - {*call.inputs}
        for fetch in call.fetches:
            found, needed = pieces.needed({fetch.text.partition(".")[0]}, plain)
            if found and inputs & needed:
                return [fetch.key, min(inputs & needed)]
        return []

    def _fetched_outside(self) -> Iterator[ast.Name]:
        """Yields what the sessions of the graph fetch, and is built elsewhere."""
        found = {call.node for call in self.found}
        sessions = {literals.dotted(call.func) for call in found}
        made: dict[str, list[ast.expr]] = {}
        for node in (n for n in ast.walk(self.graph.scope) if isinstance(n, ast.Assign)):
            for word in scopes.bound([node]):
                made.setdefault(word, []).append(node.value)
        for call in self._calls:
            is_left = call not in found and literals.dotted(call.func) in sessions
            for name in (n for n in ast.walk(call) if isinstance(n, ast.Name)):
                values = made.get(name.id, [])
                is_next = any(isinstance(v, ast.Call) and last(v) == "get_next" for v in values)
                is_built = is_left and name in ast.walk(words(call)[0])
                is_built = is_built and any(map(self.graph.kinds.builds, values))
                if (is_next or is_built) and name.id not in self.graph.assigned:
                    yield name

    def is_fetched(self, name: ast.Name) -> bool:
        """Whether a name of the graph is passed on as what a session fetches."""
        graph, node = self.graph, self._parents[name]
        while isinstance(node, (ast.List, ast.Tuple, ast.keyword)):
            node = self._parents[node]
        value = getattr(graph.assignment(name.id), "value", None)
        is_passed = isinstance(node, ast.Call) and node.func is not name
        to = last(node) if isinstance(node, ast.Call) else ""
        takes = to == "run" or to in {f.name for f in graph.program.nodes(ast.FunctionDef)}
        known = name.id in graph.tensors & graph.always - {*graph.placeholders, *self._parts}
        tool = graph.called(value).rpartition(".")[2] if value is not None else ""
        takes = takes and not graph.is_monitored and not tool.endswith(_NOT_FETCHED)
        return is_passed and takes and known

    def _take(
        self, call: ast.Call, fetches: Any, is_list: bool, inputs: Any, arrays: str, nodes: Any
    ) -> None:
        self.found.append(Call(call, fetches, is_list, inputs, arrays))
        self.done.update(name for node in nodes for name in ast.walk(node))

    def _fetch(self, node: ast.AST) -> Fetch | None:
        """Returns a tensor of the graph that is fetched by its name, as `loss` or `model.loss`."""
        if isinstance(node, (ast.List, ast.Tuple, ast.Dict)):
            return self._structure(node)
        path = literals.dotted(node)
        root = path.partition(".")[0]
        is_path = path == self.graph.program.expression(node)
        known = self.graph.tensors & self.graph.always - set(self.graph.placeholders)
        if not is_path or root not in known or path in self._parts:
            return None
        key = "global_step" if path == self.graph.step_name else path.replace(".", "_")
        return Fetch(key, path, path in self.graph.operations)

    def _structure(self, node: ast.List | ast.Tuple | ast.Dict) -> Fetch | None:
        """Returns a structure of tensors, which the step returns as it is."""
        is_dict = isinstance(node, ast.Dict)
        parts = [self._fetch(n) for n in (node.values if is_dict else node.elts)]  # type: ignore
        named = [part for part in parts if part is not None]
        is_known = all(map(literals.text, node.keys)) if is_dict else True  # type: ignore
        if not named or len(named) < len(parts) or not is_known:
            return None
        text = self.graph.program.expression(node)
        taken = {*self.graph.assigned, *self._keys.values()}
        key = self._keys.setdefault(text, scopes.free("_".join(p.key for p in named), taken))
        return Fetch(key, text, False, any(part.is_operation or part.runs for part in named))

    def _displayed(self, fetches: Any) -> Any:
        """Returns the list, tuple or dict that a variable is, if all of its uses are fetches."""
        statement = self.graph.assignment(getattr(fetches, "id", ""))
        value, name = getattr(statement, "value", None), getattr(fetches, "id", "")
        is_display = isinstance(value, (ast.List, ast.Tuple, ast.Dict))
        if not is_display or name in self._kept | self.graph.assigned:
            return fetches
        given = {node for call in self._calls for node in words(call)}
        uses = scopes.uses(self.graph.scope, {name}, [statement])
        if not all(use in given for use in uses):
            return fetches
        self.displays += [] if statement in self.displays else [statement]
        return value

    def _inputs(self, feed: ast.Dict) -> list[str] | None:
        names = [key.id if isinstance(key, ast.Name) else "" for key in feed.keys]
        known = all(name in self.graph.placeholders for name in names)
        return names if names and known and len(set(names)) == len(names) else None

    def _values(self, feed: ast.Dict) -> str:
        return ", ".join(map(self.graph.program.expression, feed.values))

    def _of_variable(self, name: str) -> list[str] | None:
        """Returns what a variable feeds, if it is a dictionary in each of its assignments."""
        if name in self._kept:
            return None
        scope = self.graph.scope
        dictionaries: list[Any] = []
        targets: set[ast.AST] = set()
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Name) and target.id == name:
                    dictionaries.append(node.value)
                    targets.add(target)
        feeding = {word for call in self._calls for word in words(call)}
        others = [n for n in scopes.uses(scope, {name}) if n not in targets and n not in feeding]
        found = [self._inputs(d) if isinstance(d, ast.Dict) else None for d in dictionaries]
        if others or not found or None in found or any(inputs != found[0] for inputs in found):
            return None
        for node in dictionaries:
            values = self._values(node)
            self.feeds[node] = f"({values})" if len(node.values) > 1 else f"({values},)"
            self.done.update(node.keys)
        return found[0]


def _runs(scope: ast.AST) -> Iterator[ast.Call]:
    for call in ast.walk(scope):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "run":
            yield call
