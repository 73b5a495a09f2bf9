"""What makes and holds a session: servers, supervisors and hooks, which `compat` has as well."""

from __future__ import annotations

import ast
from typing import Any, Iterable, Iterator

from compat.scripts.migrating.steps.calls import Call
from compat.scripts.migrating.steps.graph import Graph
from compat.scripts.migrating.steps.kinds import default_name
from compat.scripts.migrating.steps.pieces import used
from compat.scripts.rules.program import Edit
from compat.scripts.source import literals, scopes

# Of tf.train, with the arguments that these took.
_OURS = (
    "ClusterSpec",
    "Server",
    "replica_device_setter",
    "Supervisor",
    "MonitoredTrainingSession",
    "MonitoredSession",
    "SingularMonitoredSession",
    "ChiefSessionCreator",
    "WorkerSessionCreator",
    "StopAtStepHook",
    "StepCounterHook",
    "GlobalStepWaiterHook",
    "Scaffold",
    "SessionRunHook",
    "SessionRunArgs",
    "Saver",
)
# What a supervisor does by itself as well, by the argument that says it.
_DEFAULTS = {
    "init_op": ("global_variables_initializer", "initialize_all_variables"),
    "summary_op": ("summary.merge_all", "merge_all_summaries"),
    "saver": ("train.Saver",),
}
# What it runs beside them.
_INITIALIZERS = (
    *_DEFAULTS["init_op"],
    *("local_variables_initializer", "initialize_local_variables"),
    *("tables_initializer", "initialize_all_tables"),
)
# Of an optimizer for synchronous replicas, which either runtime has.
_OF_REPLICAS = (
    *("SyncReplicasOptimizer", "SyncReplicasOptimizerV2", "get_chief_queue_runner"),
    *("get_init_tokens_op", "make_session_run_hook", "local_step_init_op", "chief_init_op"),
    "ready_for_local_init_op",
)


class Sessions:
    """Finds what `compat` serves outside of a graph, and in the line of its block.

    Attributes:
      edits: of these.
      dropped: names, as nodes, of arguments that say what a supervisor does by itself.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.edits: list[Edit] = []
        self.dropped: set[ast.AST] = set()
        elsewhere = [*graph.statements, *graph.block.items]  # The line of the block is moved.
        inside = {node for part in elsewhere for node in ast.walk(part)}
        self._check_clusters()
        self.edits += self._graphs()
        for call in graph.program.nodes(ast.Call):
            name = graph.called(call).rpartition("train.")
            if call not in inside and name[1] and name[2] in _OURS:
                start, end = graph.program.span(call.func)
                self.edits.append(Edit(start, end, "compat." + name[2]))
                if name[2] in ("Supervisor", "Scaffold"):
                    self._known(call)
            elif call not in inside and self._is_around(call):
                self.edits.append(Edit(*graph.program.span(call.func), "compat.device"))
        self.edits += _joins(graph)

    def _is_around(self, call: ast.Call) -> bool:
        """Whether a call makes the device in which the function with the block is called.

        It may have a name, as `device = tf.device(setter)`.
        """
        graph, program = self._graph, self._graph.program
        parent = program.parents[call]
        if graph.called(call) != "device" or not call.args:
            return False
        if isinstance(parent, ast.withitem):
            block: Any = program.parents[parent]
            return graph.kinds.is_around(block, {getattr(graph.scope, "name", "")})
        named = [s for s in program.nodes(ast.Assign) if self._sets(s.value)]
        return self._sets(call.args[0]) or bool(used(call.args[0]) & scopes.bound(named))

    def _sets(self, node: ast.AST) -> bool:
        return self._graph.called(node) == "train.replica_device_setter"

    def _check_clusters(self) -> None:
        """Refuses a program whose clusters are all written without parameter servers."""
        calls = self._graph.program.nodes(ast.Call)
        made = [call for call in calls if self._graph.called(call) == "train.ClusterSpec"]
        jobs = [[*map(literals.text, getattr(c.args[0], "keys", []))] for c in made if c.args]
        if len(jobs) == len(made) and jobs and all("worker" in j and "ps" not in j for j in jobs):
            why = "its cluster has workers alone, and variables of steps are on parameter servers"
            self._graph.refuse(made[0], f"{why}: add a job ps")

    def _graphs(self) -> Iterator[Edit]:
        """Yields edits of blocks of the graph in which the program trains: it is the default one.

        Such are those within its block, and those in which its sessions are opened.
        """
        kinds, program = self._graph.kinds, self._graph.program
        blocks = program.nodes(ast.With)
        items = [(item.context_expr, block) for block in blocks for item in block.items]
        found = [(node, block) for node, block in items if kinds.is_graph(node)]
        own = {default_name(node) for node, block in found if kinds.trains(block)} - {""}
        words = [k for call in program.nodes(ast.Call) for k in call.keywords if k.arg == "target"]
        threads = {getattr(word.value, "id", "") for word in words}
        for node, block in found:
            is_own = default_name(node) in own or kinds.trains(block)
            home: Any = program.enclosing(block)
            if is_own and getattr(home, "name", None) in threads:  # Whose default is another one.
                self._graph.refuse(block, f"the thread of {home.name} runs in its graph")
            if is_own and block is not self._graph.block:
                yield Edit(*program.span(node), "compat.device(None)")

    def _known(self, call: ast.Call) -> None:
        """Drops the arguments of which a supervisor or a scaffold knows the value by itself."""
        dropped: list[ast.keyword] = []
        fed: list[ast.keyword] = []
        given = {keyword.arg for keyword in call.keywords}
        for keyword in call.keywords:
            value = keyword.value
            if keyword.arg == "global_step":
                is_own = isinstance(value, ast.Name) and value.id in self._graph.assigned
                is_step = is_own and value.id == self._graph.step_name  # type: ignore[attr-defined]
                known = self._graph.step is not None if is_step else self._graph.names_step
                drop = is_own and known
            elif keyword.arg == "graph":  # The step is built in the default one.
                drop = self._graph.called(self._value(value)) == "Graph"
            elif keyword.arg in _DEFAULTS:
                drop = self.is_default(keyword.arg, value)
                # Of a group, what is local would be run by nobody beside a local_init_op.
                is_group = self._graph.called(self._value(value)) == "group"
                drop = drop and not (is_group and "local_init_op" in given)
                if keyword.arg == "saver" and not drop:
                    self._made_here(value)
                feed = f"{keyword.arg[:-3]}_feed_dict"
                fed += [other for other in call.keywords if drop and other.arg == feed]
            else:
                continue
            dropped += [keyword] if drop else []
        # What is fed to the initial values: on the modern runtime they depend on no input.
        for keyword in [*dropped, *fed]:
            self.dropped.update(ast.walk(keyword.value))
        dropped += fed
        self.edits += self._without(call, dropped)

    def _value(self, node: Any) -> Any:
        """Returns what a name stands for, or the node itself."""
        name = node.id if isinstance(node, ast.Name) else ""
        return getattr(self._graph.assignment(name), "value", None) if name else node

    def assigned(self, name: str) -> list[ast.Assign]:
        """Returns the statements of the graph that assign a name."""
        nodes = [
            n for s in self._graph.statements for n in ast.walk(s) if isinstance(n, ast.Assign)
        ]
        return [node for node in nodes if name in scopes.bound([node])]

    def is_of_replicas(self, name: str) -> bool:
        """Whether all that a name is assigned is of synchronous replicas, or a list of that."""
        values: Any = [node.value for node in self.assigned(name)]
        values = [part for value in values for part in getattr(value, "elts", [value])]
        made = [getattr(value, "func", value) for value in values]
        return bool(made) and all(getattr(node, "attr", "") in _OF_REPLICAS for node in made)

    def is_default(self, argument: str, node: ast.AST | None) -> bool:
        """Whether a supervisor does by itself what an argument says."""
        values = [statement.value for statement in self.assigned(getattr(node, "id", ""))]
        if len(values) > 1:
            return all(self.is_default(argument, value) for value in values)
        made = self._value(node)
        called = self._graph.called(made)
        if argument == "init_op" and called == "group" and not made.keywords:
            parts = [self._graph.called(self._value(part)) for part in made.args]
            is_known = all(part.rpartition(".")[2] in _INITIALIZERS for part in parts)
            return is_known and not {*parts}.isdisjoint(_DEFAULTS[argument])
        return called in _DEFAULTS[argument] and not (made.args or made.keywords)

    def repeated(self, found: Iterable[Call]) -> list[Call]:
        """Returns the calls that initialize once more, in front of all others.

        A supervisor has done so; done again, it would also undo what a checkpoint restores.
        """
        again: list[Call] = []
        parents = self._graph.program.parents
        for call in sorted(found, key=lambda call: self._graph.program.span(call.node)):
            node: Any = call.node
            fetched = node.args[0] if node.args else None
            is_group = self._graph.called(self._value(fetched)) == "group"
            is_alone = isinstance(parents[node], ast.Expr) and not is_group
            while node in parents and not isinstance(node, (ast.For, ast.While)):
                node = parents[node]
            if isinstance(node, (ast.For, ast.While)) or not is_alone:
                break
            if not self.is_default("init_op", fetched):
                break
            again.append(call)
        return again

    def _made_here(self, node: ast.expr) -> None:
        """Makes a saver where a supervisor is given it, instead of in the graph."""
        made = self._value(node)
        is_saver = self._graph.called(made) in _DEFAULTS["saver"] and not made.args
        words = [keyword.value for keyword in made.keywords] if is_saver else []
        if node is made or not words or scopes.uses(made, self._graph.assigned):
            return
        span = self._graph.program.span
        given = self._graph.program.text[span(made.func)[1] : span(made)[1]]
        self.edits.append(Edit(*span(node), f"compat.Saver{given}"))
        self.dropped.update(ast.walk(node))

    def _without(self, call: ast.Call, dropped: list[ast.keyword]) -> Iterator[Edit]:
        """Yields the edits that remove arguments, with a comma each."""
        spans = []
        for node in [*call.args, *call.keywords]:
            value = getattr(node, "value", node) if isinstance(node, ast.keyword) else node
            start, end = self._graph.program.argument(call, value)
            if isinstance(node, ast.keyword):
                start = self._graph.program.text.rindex(str(node.arg), 0, start)
            spans.append((start, end, node in dropped))
        for i, (start, end, is_dropped) in enumerate(spans):
            if is_dropped and all(span[2] for span in spans[:i]):
                yield Edit(start, spans[i + 1][0] if i + 1 < len(spans) else end, "")
            elif is_dropped:
                yield Edit(spans[i - 1][1], end, "")


def _joins(graph: Graph) -> Iterator[Edit]:
    """Yields an exit at the end of the run for each `server.join()`.

    And `if server.serves:` for `if FLAGS.job_name == "ps":` before it: on the modern runtime all
    workers but one serve as well.
    """
    servers = {
        target.id
        for node in graph.program.nodes(ast.Assign)
        if graph.called(node.value) == "train.Server"
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in graph.program.nodes(ast.Call):
        owner, _, method = literals.dotted(call.func).rpartition(".")
        if method == "join" and owner in servers:  # In TensorFlow it never returned.
            yield Edit(*graph.program.span(call), f"sys.exit({owner}.join())")
    for node in graph.program.nodes(ast.If):
        joined = [
            literals.dotted(statement.value.func)
            for statement in node.body
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        ]
        joins = [name for name in joined if name.rpartition(".")[2] == "join"]
        name = joins[0].rpartition(".")[0] if joins else ""
        is_made_before = name in servers and name not in scopes.bound(node.body)
        is_ps = isinstance(node.test, ast.Compare) and any(
            literals.text(side) == "ps" for side in [node.test.left, *node.test.comparators]
        )
        if is_made_before and is_ps and isinstance(node.test.ops[0], ast.Eq):
            yield Edit(*graph.program.span(node.test), f"{name}.serves")
