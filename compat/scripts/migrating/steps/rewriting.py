"""Writes a program of `compat.v1` anew, on `compat.step`."""

from __future__ import annotations

import ast
import re
from typing import Any, Mapping, Sequence

from compat.scripts.migrating import definitions, migration
from compat.scripts.migrating.classes import dissolving
from compat.scripts.migrating.steps import estimators, expressions, plain
from compat.scripts.migrating.steps.calls import Call, Calls
from compat.scripts.migrating.steps.graph import Graph
from compat.scripts.migrating.steps.kept import Kept
from compat.scripts.migrating.steps.kinds import tensorflow
from compat.scripts.migrating.steps.pieces import used
from compat.scripts.migrating.steps.sessions import Sessions
from compat.scripts.migrating.steps.waiting import joined
from compat.scripts.rules.program import Edit, Program, RefusedError, Remark
from compat.scripts.source import conversion, literals, scopes

_HEAD = """import sys

import compat

# --runtime=legacy, the default, or --runtime=modern.
compat.select_runtime(compat.runtime_from(sys.argv))

"""
_LEGACY_ONLY = (
    "{name} is used here, and made in the graph, so it may not work with --runtime=modern; return "
    "it from the step to use its value"
)
_ASSIGNED = (
    "this adds to the graph, which is complete once the session is open; make the assignment of "
    "{name} where the graph is built, with a placeholder for the value"
)
_LACKS = "{0} needs {1}, which is not fed here, so training stops here, as it did; feed it"
_WRITTEN = ("compat.step", "compat.select_runtime")


def migrate(filename: str, text: str, texts: Mapping[str, str] = {}) -> migration.Migrated:
    """Returns a program of `compat.v1` as one of `compat.step`, or raises `UserError`.

    The script's own modules, also programs of `compat.v1`, are `texts`, by their files.
    """
    program = Program(conversion.Source(filename, text, False), marked=True)
    if any(literals.dotted(call.func) in _WRITTEN for call in program.nodes(ast.Call)):
        remarks = migration.remarks_in(text)
        return migration.Migrated(text, {}, remarks, [], is_changed=False, was_migrated=True)
    for call in program.nodes(ast.Call):
        if any(literals.text(word).strip("-") == "runtime" for word in call.args):
            raise RefusedError(program, call, "it has a flag `runtime` of its own; rename it")
    tf = tensorflow(program)
    if estimators.trains(program, tf, texts):
        return estimators.migrated(expressions.written(program, tf), _HEAD)
    program = definitions.gathered(program, texts, definitions.feeds_or_runs)
    kept = Kept(program, tf)
    program = dissolving.dissolved(joined(kept.program, tf), tf)
    graph = Graph(plain.supervised(program, tf), tf)
    return kept.restored(_Rewriting(graph, kept.remarks(graph.program)).result())


class _Rewriting:
    def __init__(self, graph: Graph, remarks: list[Remark]) -> None:
        self.graph, self.program = graph, graph.program
        self.calls, self.sessions = Calls(graph), Sessions(graph)
        self.edits = list(self.sessions.edits)
        self.remarks = remarks
        self.taken = {n.id for n in self.program.nodes(ast.Name)}
        self.taken |= {n.name for n in self.program.nodes(ast.FunctionDef)}
        self.build, self._values = self._free("build"), ""
        self.steps: dict[Any, str] = {}  # Names of steps by what they return and take.
        # Placeholders and values of the graph that are passed on in another way than to `run`.
        self.fed: list[str] = []
        self.fetched: list[str] = []

    def result(self) -> migration.Migrated:
        """Returns the new program."""
        for call in self.sessions.repeated(self.calls.found):
            self.calls.found.remove(call)
            self.sessions.dropped.update(ast.walk(call.node))
            statement: Any = self.program.parents[call.node]
            self._remove(statement)
        self.remarks += self.calls.legacy_only()
        shared = self._shared()
        for call in self.calls.found:
            self._call(call)
        for node, text in self.calls.feeds.items():
            self.edits.append(Edit(*self.program.span(node), text))
        inputs = [found.statement for _, found in sorted(self.graph.placeholders.items())]
        for statement in [*inputs, *self.calls.displays]:
            self._remove(statement)
        self._global_step()
        self._function(shared)
        start = self.program.head()
        comments = migration.comments(self.program, self.remarks)
        ordered = sorted(self.edits, key=lambda edit: edit[:2])
        if any(after.start < before.end for before, after in zip(ordered, ordered[1:])):
            self.graph.refuse(self.graph.block, "a call of its session is within another one")
        text = self.program.edited([Edit(start, start, _HEAD), *comments, *self.edits])
        migration.check(self.program, text, "write it plainly, or use --to=v1")
        counts = {"step": len(self.steps), "calls": len(self.calls.found)}
        counts["sessions"] = len(self.sessions.edits)
        return migration.Migrated(text, counts, migration.remarks_in(text), [])

    def _free(self, name: str) -> str:
        found = scopes.free(name, self.taken)
        self.taken.add(found)
        return found

    def _shared(self) -> list[str]:  # noqa: C901
        """Returns the names of the graph that the rest of the program uses as they are."""
        graph, shared = self.graph, set()
        done = self.calls.done | self.sessions.dropped
        inputs = [placeholder.statement for placeholder in graph.placeholders.values()]
        names = graph.assigned | set(graph.placeholders)
        uses = scopes.uses(graph.scope, names, [*graph.statements, *inputs])
        left = [name for name in uses if name not in done]
        # As where a monitored session initializes by itself.
        unread = graph.assigned - used(self.program.tree)
        for name in sorted({name.id for name in uses} - {name.id for name in left} | unread):
            if all(n in self.sessions.dropped for n in uses if n.id == name):
                for statement in self.sessions.assigned(name):
                    is_saver = graph.called(statement.value) == "train.Saver"
                    if is_saver or self.sessions.is_default("init_op", statement.value):
                        self._remove(statement)
        if not isinstance(graph.scope, ast.Module):  # It may read one before it assigns it.
            shared |= graph.assigned & scopes.parameters(graph.scope)
        said = set()
        self.fed = sorted({name.id for name in left if name.id in graph.placeholders})
        self.fetched = sorted({name.id for name in left if self.calls.is_fetched(name)})
        for name in left:
            shared.add(name.id)
            if name.id in graph.placeholders and graph.is_monitored:
                why = f"the placeholder {name.id} is used beside session.run(), or fed there beside"
                graph.refuse(name, f"{why} what is no placeholder; feed placeholders alone there")
            if name.id in graph.placeholders or self.calls.is_fetched(name):
                continue
            if name.id in graph.tensors and name.id not in said:
                said.add(name.id)
                if not self.sessions.is_of_replicas(name.id):
                    method = getattr(self.program.parents[name], "attr", "")
                    why = _ASSIGNED if method.startswith("assign") else _LEGACY_ONLY
                    self.remarks.append(Remark(name, why.format(name=name.id)))
        return sorted(shared - {*self.fed, *self.fetched})

    def _remove(self, statement: ast.stmt) -> None:
        """Removes a statement; `pass` stands for the only one of its block."""
        start, end = self.program.span(statement)
        parent: Any = self.program.parents[statement]
        siblings = parent.body if statement in parent.body else parent.orelse
        others = [s for s in siblings if s is not statement]
        removed = {p.statement for p in self.graph.placeholders.values()}
        if all(other in removed for other in others) and statement is siblings[0]:
            self.edits.append(Edit(start, end, "pass"))
            return
        line = self.program.text.rfind("\n", 0, start) + 1
        rest = re.compile(r"[ \t]*(#[^\n]*)?\n").match(self.program.text, end)
        if self.program.text[line:start].strip() or rest is None:
            self.edits.append(Edit(start, end, "pass"))
        elif rest[1]:
            self.edits.append(Edit(start, rest.start(1), ""))  # Its comment stays.
        else:
            self.edits.append(Edit(line, rest.end(), ""))

    def _global_step(self) -> None:
        statement = self.graph.step
        if statement is not None:
            span = self.program.span(statement.value)
            self.edits.append(Edit(*span, "compat.get_or_create_global_step()"))

    def _function(self, shared: list[str]) -> None:
        """Makes the block a function, and the step of it after its last statement."""
        graph, text = self.graph, self.program.text
        start, _ = self.program.span(graph.block)
        outer = text[text.rfind("\n", 0, start) + 1 : start]
        first = self.program.line_start(graph.statements[0])
        inner = text[text.rfind("\n", 0, first) + 1 : first]
        colon = self.program.colon(graph.block)
        parameters = list(graph.placeholders.values())
        names = ", ".join(p.name for p in parameters)
        head = f"def {self.build}({names}):"
        if shared and isinstance(graph.scope, ast.Module):
            head += f"\n{inner}global {', '.join(shared)}"
        elif shared:
            elsewhere = scopes.bound(graph.scope.body, without=graph.statements)
            elsewhere |= scopes.parameters(graph.scope)
            new = [name for name in shared if name not in elsewhere]
            first_values = f"{' = '.join(new)} = None\n{outer}" if new else ""
            head = f"{first_values}{head}\n{inner}nonlocal {', '.join(shared)}"
        self.edits.append(Edit(start, colon, head))
        end = text.find("\n", self.program.span(graph.statements[-1])[1]) + 1 or len(text)
        values: dict[str, str] = {}
        for call in self.calls.found:
            values.update((fetch.key, fetch.text) for fetch in call.fetches)
        values.update((name, name) for name in self.fetched if name not in values)
        if not (values or graph.step_name or graph.names_step):
            graph.refuse(graph.block, "no call of its session fetches what it builds by a name")
        unit = "\t" if inner.startswith("\t") else "    "
        lines = [f"{inner}return {{\n"]
        lines += [f'{inner}{unit}"{key}": {value},\n' for key, value in values.items()]
        lines.append(f"{inner}}}\n")
        specs = ", ".join(p.name if p.name in self.fed else p.spec for p in parameters)
        header = self._new_header(text[start:colon])
        lines.append(f"\n{outer}{header}\n")
        lines += [f"{inner}{p.name} = {p.named}\n" for p in parameters if p.name in self.fed]
        lines.append(f"{inner}{self.build} = compat.step({self.build}, [{specs}])\n")
        lines += [f'{inner}{name} = {self.build}["{name}"]\n' for name in self.fetched]
        lines += [f"{inner}{n} = {self._selected(*key)}\n" for key, n in self.steps.items()]
        self.edits.append(Edit(end, end, "".join(lines)))

    def _new_header(self, header: str) -> str:
        """Returns the line of the block, with what `compat` has."""
        tf = re.escape(self.graph.tf)
        header = re.sub(rf"\b{tf}\.device\(", "compat.device(", header)
        graph = rf"(\b{tf}\.Graph\(\)|\b\w+)\.as_default\(\)"
        header = re.sub(graph, "compat.device(None)", header)
        return re.sub(rf"\b{tf}\.train\.(replica_device_setter)\b", r"compat.\1", header)

    def _selected(self, keys: Sequence[str], inputs: Sequence[str]) -> str:
        """Returns what gives the step of these values and inputs."""
        words = [f'"{key}"' for key in keys]
        if [*inputs] != [*self.graph.placeholders]:
            words.append(f"inputs={[*inputs]}".replace("'", '"'))
        return f"{self.build}.select({', '.join(words)})"

    def _step_of(self, call: Call) -> str:
        key = tuple(fetch.key for fetch in call.fetches), tuple(call.inputs)
        lacking = self.calls.lacking(call)
        if lacking:  # Where it stops, the old program has stopped, and not before.
            self.remarks.append(Remark(call.node, _LACKS.format(*lacking)))
            return self._selected(*key)
        if key not in self.steps:
            trains = any(fetch.is_operation or fetch.runs for fetch in call.fetches)
            others = [f.key for f in call.fetches if not f.is_operation]
            self.steps[key] = self._free("train" if trains else f"compute_{others[0]}")
        return self.steps[key]

    def _call(self, call: Call) -> None:
        receiver = self.program.text[slice(*self.program.span(call.node.func))]
        words = [self._step_of(call), *([call.arrays] if call.arrays else [])]
        new = f"{receiver}({', '.join(words)})"
        statement = self.program.parents[call.node]
        if isinstance(statement, ast.Expr):
            self.edits.append(Edit(*self.program.span(call.node), new))
            return
        if (
            isinstance(statement, ast.Assign)
            and call.is_list
            and self._assign(call, statement, new)
        ):
            return
        if call.is_list:
            keys = ", ".join(f'"{fetch.key}"' for fetch in call.fetches)
            new = f"list(map({new}.get, [{keys}]))"
        else:
            new = call.fetches[0].of(new)
        self.edits.append(Edit(*self.program.span(call.node), new))

    def _assign(self, call: Call, statement: ast.Assign, new: str) -> bool:
        """Rewrites `_, loss = session.run([train, loss])`."""
        target = statement.targets[0]
        names = getattr(target, "elts", [])
        is_plain = len(statement.targets) == 1 and len(names) == len(call.fetches)
        if not is_plain or not all(isinstance(name, ast.Name) for name in names):
            return False
        pairs = [(n.id, f) for n, f in zip(names, call.fetches) if n.id != "_"]
        start, end = self.program.span(statement)
        line = self.program.text[self.program.text.rfind("\n", 0, start) + 1 : start]
        if not pairs:
            self.edits.append(Edit(start, end, new))
        elif len(pairs) == 1:
            self.edits.append(Edit(start, end, f"{pairs[0][0]} = {pairs[0][1].of(new)}"))
        elif line.strip():
            return False
        else:
            values = self._values = self._values or self._free("values")
            left = ", ".join(name for name, _ in pairs)
            right = ", ".join(fetch.of(values) for _, fetch in pairs)
            self.edits.append(Edit(start, end, f"{values} = {new}\n{line}{left} = {right}"))
        return True
