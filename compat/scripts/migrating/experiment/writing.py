"""Writes a program of `compat.v1` as an experiment."""

from __future__ import annotations

import ast
import os
import re
from typing import Any, Mapping

from compat.errors import UserError
from compat.scripts.migrating import definitions, migration
from compat.scripts.migrating.classes import dissolving
from compat.scripts.migrating.experiment import chief, functions, imports, placement
from compat.scripts.migrating.experiment.data import Data, Fed
from compat.scripts.migrating.experiment.feeding import Feeding
from compat.scripts.migrating.experiment.flags import INHERITED, TAKEN, Flags
from compat.scripts.migrating.experiment.methods import Methods
from compat.scripts.migrating.experiment.model import Model
from compat.scripts.migrating.steps import plain
from compat.scripts.migrating.steps.graph import Graph
from compat.scripts.migrating.steps.kept import Kept
from compat.scripts.migrating.steps.kinds import last, tensorflow
from compat.scripts.migrating.steps.pieces import Pieces, used
from compat.scripts.migrating.steps.waiting import joined
from compat.scripts.rules.program import Edit, Program
from compat.scripts.source import conversion, literals, modules, scopes

_LEFT = (
    "experiments.run has the loop, the session, checkpoints and records in place of what is below; "
    "copy from there what else you want"
)
_NOTE = migration.REMARK.format(number="note", text=_LEFT)
_LENGTH = "how long it trains was not found; the default is 20 epochs, give --epochs or --max_steps"
_SYNC = "synchronous replicas are the flag --sync"
_CHIEF = "what the chief alone ran with its updates, all workers run with theirs"
_LOST = "{name}, which it fetches, is made of gradients: compute it in gradients(), it is no output"
_UNFED = "{name}, which it fetches, needs what its training does not feed: it is no output"
_ROWS = "its flag batch_size is the setting {name}: an example is a batch that its loop made"
_BODY = "def body():\n"
_PARAMETERS = {"batch", "training", "step", "pairs", "optimizer"}
_TASK = {"job_name", *chief.NUMBERS, "ps_hosts", "worker_hosts"}


def migrate(filename: str, text: str, texts: Mapping[str, str] = {}) -> migration.Migrated:
    """Returns a program of `compat.v1` as an `Experiment`, or raises `UserError`.

    The script's own modules, also programs of `compat.v1`, are `texts`, by their files.
    """
    program = Program(conversion.Source(filename, text, False), marked=True)
    for node in program.nodes(ast.ImportFrom):
        if (node.module or "").partition(".")[0] == "experiments":
            raise UserError(f"{filename} is an experiment already; there is nothing to migrate")
    if any(literals.dotted(call.func) == "compat.step" for call in program.nodes(ast.Call)):
        raise UserError(
            f"{filename} is a program on compat.step; migrate the script of which it was made"
        )
    program = definitions.gathered(program, texts, functions.is_work)
    tf = tensorflow(program)
    kept = Kept(program, tf)
    program = dissolving.dissolved(joined(kept.program, tf), tf)
    program = plain.supervised(functions.inlined(program, tf), tf)
    program, is_other = chief.everywhere(placement.left_out(program, tf), tf)
    graph = Graph(program, tf, "an Experiment", "use --to=v1")
    graph.remedy = "use --to=compat or --to=v1"  # A step has what an experiment needs of a graph.
    made = _Writing(graph).result([_CHIEF] if is_other else [])
    new, _, _ = made.text.partition(migration.REMARK.partition("{")[0])
    for node in graph.program.nodes(ast.Import, ast.ImportFrom):
        if scopes.bound([node]) & set(re.findall(r"\w+", new)):
            for file in modules.files(node, filename, exists=texts.__contains__):
                if re.search(r"\bFLAGS\b|\bflags\.|\bparse_args\(", texts[file]):
                    name = os.path.basename(file)
                    graph.refuse(node, f"{name}, which it still needs, reads flags")
    return kept.restored(made)


class _Writing:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.program = graph, graph.program
        self.pieces, self.flags = Pieces(self.program), Flags(self.program)
        self.model = Model(graph, self.pieces)
        self.feeding = Feeding(graph, self.model, self.flags)
        self.top: list[Any] = self.program.tree.body
        self.name = _class_name(self.program.source.filename)
        # Which load TensorFlow, before --runtime is known: they are imported where they are used.
        self.inner = {
            node: self.pieces.text(node)
            for node in self.program.nodes(ast.Import, ast.ImportFrom)
            if node in self.top and imports.loads(node)
        }

    def result(self, of_chief: list[str]) -> migration.Migrated:  # noqa: C901
        """Returns the new program; the remarks `of_chief` are for what follows its updates."""
        moving = self._moving()
        before = self._before(moving)
        outside = [s for s in self.feeding.outside if s not in {*self.top} - {*moving}]
        apart = [*before, *self.graph.apart()]  # Of which its data are made.
        data = Data(self.feeding, self.pieces, [*apart, *(s for s in outside if s not in apart)])
        fed = data.fed()
        updating = Methods(self.model.updates, before)
        gradients, wanted = updating.gradients()
        if not gradients and {"weight_decay", "clip_norm"} & set(self.flags.by_name):
            gradients = "        return pairs  # What its flags say is in the loss.\n"
        after, more = updating.after_update(self.feeding.call.args[:1])
        loss, names = self.model.loss(fed.inputs, before, updating)
        numbers = {name: fed.inputs[name] for name in data.numbers}
        rates = {f"{holder}.learning_rate" for holder in self.flags.holders}
        rates = rates if "learning_rate" in self.flags.by_name else set()
        optimizer, others = updating.optimizer(numbers, rates, fed.settings)
        wanted |= fed.names | names | more | others
        kept = self._kept(wanted)
        for statement in kept:
            for name in sorted(scopes.bound([statement]) & _PARAMETERS):
                self.graph.refuse(statement, f"its {name} is a name of an experiment: rename it")
        functions = ""
        for statement in kept:
            is_long = not isinstance(statement, (ast.Assign, ast.AugAssign))
            edits = self._imported(statement) if is_long else []
            functions += "\n\n" * is_long + self.pieces.take([statement], edits, "")
            functions += "\n\n" * is_long
        functions = re.sub(r"\n{4,}", "\n\n\n", functions)
        methods = [
            ("data(self)", fed.lines),
            ("loss(self, batch, training)", loss),
            *((f"{name}(self, step)", lines) for name, lines in optimizer.items()),
            ("gradients(self, pairs)", gradients),
            ("after_update(self, step, optimizer)", after),
        ]
        holder = self._holder(_BODY + "".join(lines for _, lines in methods) + functions)
        rows = self.flags.rows(fed.settings) if holder else ""
        if rows:
            flag = re.compile(rf"(?<![\w.]){holder}\.batch_size\b")
            methods = [(h, flag.sub(f"{holder}.{rows}", lines)) for h, lines in methods]
            functions = flag.sub(f"{holder}.{rows}", functions)
        is_shared = bool(holder and _read(holder, functions))
        written = [(header, lines) for header, lines in methods if lines]
        body = "".join(self._method(h, lines, holder, is_shared) for h, lines in written)
        fields = self._fields(fed, holder, f"class {self.name}:\n{body}{functions}")
        nested = "    @dataclass(frozen=True)\n    class Settings(Experiment.Settings):\n"
        nested += "".join(f"        {field}\n" for field in fields) + "\n"
        made = f"class {self.name}(Experiment):\n{nested if fields else ''}{body}".rstrip() + "\n"
        constant = f"{holder} = None  # The settings, for functions.\n\n" if is_shared else ""
        rest = f"{constant}{functions.strip()}\n\n\n" if functions.strip() else constant
        run = f'\n\nif __name__ == "__main__":\n    run({self.name})\n'
        head = imports.head(self.graph, self.pieces, [*self.inner], rest + made + run, bool(fields))
        remarks = of_chief if after else []
        if not {"epochs", "max_steps"} & set(fed.settings):
            remarks.append(_LENGTH)
        if any("SyncReplicas" in self.graph.called(c) for c in self.program.nodes(ast.Call)):
            remarks.append(_SYNC)
        remarks += [_LOST.format(name=name) for name in self.model.lost]
        remarks += [_UNFED.format(name=name) for name in self.model.unfed]
        if rows and f"{rows}: int" in nested:
            remarks.append(_ROWS.format(name=rows))
        self._known(holder, fields)
        left = self.pieces.left()
        text = f"{head}\n\n{rest}{made}{run}\n" + self._comments(remarks, left)
        migration.check(self.program, text, "write it plainly, or use --to=compat")
        bound = {n.id: n for n in self.program.nodes(ast.Name) if isinstance(n.ctx, ast.Store)}
        bound.update((node.arg, node) for node in self.program.nodes(ast.arg))
        inside = {n for s in self.graph.statements for n in ast.walk(s)}
        for name in sorted(scopes.unknown(text) & set(bound)):
            why = f"its data, loss or optimizer needs {name}"
            if bound[name] in inside:
                why += ", which is made among the lines that build the graph: move it before them"
            self.graph.refuse(bound[name], why)
        counts = {"settings": len(fields), "inputs": len(fed.inputs)}
        counts["outputs"] = len(self.model.outputs)
        notes = [(n, _LEFT) for n, line in enumerate(text.split("\n"), 1) if line == _NOTE]
        return migration.Migrated(text, counts, migration.remarks_in(text), [], notes=notes)

    def _moving(self) -> list[ast.stmt]:
        """Returns the statements of the module that move into methods; others stay there."""
        found: list[ast.stmt] = []
        for statement in self.top:
            made = {name for other in found for name in scopes.bound([other])}
            is_constant = self._is_constant(statement) and not used(statement) & made
            if isinstance(statement, ast.Assign) and not (is_constant or self._is_flags(statement)):
                found.append(statement)
        return found

    def _before(self, found: list[ast.stmt]) -> list[ast.stmt]:
        """Returns the statements in front of the block that may move into methods."""
        inner = [s for s, _ in self.graph.before() if s not in self.top]
        if isinstance(self.graph.scope, ast.Module):
            place = self.program.span(self.graph.block)
            found = [s for s in found if self.program.span(s) < place]
        return [*found, *(s for s in inner if not self._is_flags(s))]

    def _is_constant(self, statement: ast.stmt) -> bool:
        nodes = [*ast.walk(statement)]
        calls = any(isinstance(node, (ast.Call, ast.ListComp)) for node in nodes)
        return not calls and not self.flags.read_in(statement)

    def _is_flags(self, statement: ast.stmt) -> bool:
        names = scopes.bound([statement])
        value = getattr(statement, "value", None)
        path = literals.dotted(value) if isinstance(value, ast.AST) else ""
        return bool(names & self.flags.holders) or path.endswith(("app.flags", "flags"))

    def _kept(self, wanted: set[str]) -> list[ast.stmt]:
        """Returns what makes functions and constants of the module that are used, in its order."""
        early = functions.early(self.top, self.graph.runs)
        found: list[ast.stmt] = []
        while True:
            more = [
                s
                for s in self.top
                if s not in found and s is not self.graph.scope
                if functions.made(s, s in early) & wanted
                and not (self._is_flags(s) or self.graph.runs(s))
                and self.pieces.lines(s) not in self.pieces.moved
                and not any(self.graph.block is node for node in ast.walk(s))
            ]
            if not more:
                return [s for s in self.top if s in found]
            found += more
            wanted = wanted.union(*map(used, more))

    def _holder(self, text: str) -> str:
        found = [h for h in sorted(self.flags.holders) if _read(h, text)]
        if len(found) > 1:
            self.graph.refuse(self.graph.block, f"its flags are in {' and '.join(found)}")
        return found[0] if found else ""

    def _method(self, header: str, lines: str, holder: str, is_shared: bool) -> str:
        words = set(re.findall(r"\w+", lines))
        inner = [text for node, text in self.inner.items() if scopes.bound([node]) & words]
        lines = "".join(f"        {text}\n" for text in inner) + "\n" * bool(inner) + lines
        first = ""
        if holder and (is_shared or _read(holder, _BODY + lines)):
            first = f"        global {holder}\n" if is_shared else ""
            first += f"        {holder} = self.settings\n"
        return f"    def {header}:\n{first}{lines}\n"

    def _imported(self, function: Any) -> list[Edit]:
        """Returns the edits that import in a function what loads TensorFlow."""
        names = used(function)
        texts = [text for node, text in self.inner.items() if scopes.bound([node]) & names]
        if not texts or not isinstance(function, ast.FunctionDef):
            return []
        has_text = ast.get_docstring(function) is not None and len(function.body) > 1
        start = self.program.span(function.body[int(has_text)])[0]
        line = self.program.text.rfind("\n", 0, start) + 1
        indent = self.program.text[line:start]
        return [Edit(line, line, "".join(f"{indent}{text}\n" for text in texts))]

    def _fields(self, fed: Fed, holder: str, text: str) -> list[str]:
        fields: dict[str, str] = {}
        for name in _read(holder, text) if holder else ():
            flag = self.flags.by_name.get(name)
            if name in _TASK:
                self.graph.refuse(self.graph.block, f"what it builds depends on the flag {name}")
            if flag is not None and name not in TAKEN:
                fields[name] = flag.field()
        for name, value in fed.settings.items():
            fields.setdefault(name, f"{name}: {INHERITED[name]} = {value}")
        return list(fields.values())

    def _known(self, holder: str, fields: list[str]) -> None:
        """Takes what says the settings, and starts the program: these are there in other words."""
        names = {field.partition(":")[0] for field in fields}
        for statement in self.program.nodes(ast.Expr):
            call: Any = statement.value
            defines = isinstance(call, ast.Call) and bool(call.args)
            if defines and literals.text(call.args[-1 if last(call) == "add_argument" else 0]):
                name = literals.text(call.args[-1 if last(call) == "add_argument" else 0])
                is_flag = last(call) == "add_argument" or last(call).startswith("DEFINE_")
                if is_flag and name.lstrip("-").replace("-", "_") in names:
                    self.pieces.moved.append(self.pieces.lines(statement))
        for statement in self.top:
            starts = isinstance(statement, ast.If) and _starts(statement)
            if starts or (isinstance(statement, ast.Assign) and self._is_flags(statement)):
                self.pieces.moved.append(self.pieces.lines(statement))

    def _comments(self, remarks: list[str], left: str) -> str:
        lines = [migration.REMARK.format(number=i, text=t) for i, t in enumerate(remarks, 1)]
        if left.strip():
            lines += [_NOTE, *(f"# {line}".rstrip() for line in left.split("\n"))]
        return "\n" * bool(lines) + "".join(f"{line}\n" for line in lines)


def _starts(statement: ast.If) -> bool:
    """Whether a statement does nothing but call `tf.app.run()` or a function of the program."""
    first = statement.body[0]
    is_call = isinstance(first, ast.Expr) and isinstance(first.value, ast.Call)
    return is_call and len(statement.body) == 1 and not statement.orelse


def _read(holder: str, text: str) -> list[str]:
    """Returns the attributes of a name that code reads, in their order."""
    found = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Attribute)]
    return [*dict.fromkeys(n.attr for n in found if getattr(n.value, "id", "") == holder)]


def _class_name(filename: str) -> str:
    stem = os.path.splitext(os.path.basename(filename))[0]
    words = re.findall(r"[A-Za-z0-9]+", stem.encode("ascii", "ignore").decode())
    name = "".join(word[:1].upper() + word[1:] for word in words)
    name = name if name[:1].isalpha() else f"Migrated{name}"
    return f"{name}Program" if name in ("Experiment", "Settings") else name
