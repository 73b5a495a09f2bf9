"""Flags of a program, of `tf.app.flags`, absl or argparse, as settings of an experiment."""

from __future__ import annotations

import ast
from typing import Any, Mapping, NamedTuple

from compat.scripts.migrating.steps.kinds import last
from compat.scripts.rules.program import Program
from compat.scripts.source import literals, scopes

_DEFINED = {
    "DEFINE_string": "str",
    "DEFINE_integer": "int",
    "DEFINE_float": "float",
    "DEFINE_boolean": "bool",
    "DEFINE_bool": "bool",
    "DEFINE_enum": "str",
}
# What every experiment has, and is given another default.
INHERITED = {
    "batch_size": "int",
    "learning_rate": "float",
    "epochs": "int",
    "seed": "int",
    "max_steps": "int | None",
    "optimizer": "str",
    "checkpoint_every": "int",
    "log_every": "int",
    "weight_decay": "float",
    "clip_norm": "float",
}
# What every experiment has, and means something else with, perhaps.
TAKEN = {"logdir", "runtime", "strategy", "sync", "config", "preset", "job_name", "task_index"}
_GROUPS = {"data_dir": "data", "batch_size": "data", "learning_rate": "training"}


class Flag(NamedTuple):
    """A flag of a program; its default is text."""

    name: str
    kind: str
    default: str
    help: str

    def field(self) -> str:
        """Returns the line of a class of settings."""
        if self.name in INHERITED:
            return f"{self.name}: {INHERITED[self.name]} = {self.default}"
        kind = f"{self.kind} | None" if self.default == "None" else self.kind
        says = " ".join(self.help.split()) or f"{self.name.replace('_', ' ')}."
        says = says.replace("\\", "\\\\").replace('"', '\\"')
        group = f', group="{_GROUPS[self.name]}"' if self.name in _GROUPS else ""
        return f'{self.name}: {kind} = setting({self.default}, "{says}"{group})'


class Flags:
    """The flags of a program.

    Attributes:
      by_name: these.
      holders: the names of the objects that have their values, such as FLAGS.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.by_name: dict[str, Flag] = {}
        self._whole: dict[str, str] = {}  # Defaults of floats of argparse that are whole numbers.
        self.holders = {"FLAGS"}
        for call in program.nodes(ast.Call):
            if last(call) in _DEFINED and len(call.args) >= 2:
                self._defined(call)
            elif last(call) == "add_argument" and call.args:
                self._argument(call)
        for node in program.nodes(ast.Assign):
            if _parses(node.value) or literals.dotted(node.value).endswith(".FLAGS"):
                target = node.targets[0]
                first = getattr(target, "elts", [target])[0]
                self.holders |= {first.id} if isinstance(first, ast.Name) else set()
        functions = {node.name: node for node in program.nodes(ast.FunctionDef)}
        for call in program.nodes(ast.Call):  # Such as `main(parser.parse_args())`.
            function = functions.get(literals.dotted(call.func))
            for parameter, value in zip(function.args.args if function else (), call.args):
                if _parses(value) or getattr(value, "id", "") in self.holders:
                    self.holders.add(parameter.arg)
        for name in self._sizes() & self._whole.keys():
            self.by_name[name] = self.by_name[name]._replace(kind="int", default=self._whole[name])

    def _sizes(self) -> set[str]:
        """Returns the flags that are elements of a list, as `[None, args.hidden]`, or of a range.

        A default of argparse is no text, so that its type, such as float, is not asked for it.
        """
        lists = [part for node in self.program.nodes(ast.List) for part in node.elts]
        calls = [n for n in self.program.nodes(ast.Call) if literals.dotted(n.func) == "range"]
        return {self.read(part) for part in [*lists, *(a for n in calls for a in n.args)]} - {""}

    def _defined(self, call: ast.Call) -> None:
        given: Any = dict(zip(("name", "default", "help"), call.args))
        given.update((word.arg, word.value) for word in call.keywords)
        name, kind = literals.text(given["name"]), _DEFINED[last(call)]
        if last(call) == "DEFINE_enum" and len(call.args) > 3:
            given["help"] = call.args[3]
        self._add(name, kind, given.get("default"), given.get("help"))

    def _argument(self, call: ast.Call) -> None:
        given: Any = {word.arg: word.value for word in call.keywords}
        name = literals.text(call.args[-1]).lstrip("-").replace("-", "_")
        kind = literals.dotted(given["type"]) if "type" in given else "str"
        if "action" in given or literals.text(given.get("type")) == "bool":
            kind = "bool"
        if kind == "float" and type(literals.value(given.get("default"))) is int:
            self._whole[name] = self.program.expression(given["default"])
        self._add(name, kind, given.get("default"), given.get("help"))

    def _add(self, name: str, kind: str, default: Any, says: Any) -> None:
        text = "None" if default is None else self.program.expression(default)
        if kind == "bool" and text == "None":
            text = "False"
        known = kind if kind in ("str", "int", "float", "bool") else "str"
        if known == "float" and isinstance(literals.value(default), int):
            text += ".0"
        self.by_name[name] = Flag(name, known, text, literals.text(says))

    def read(self, node: ast.AST) -> str:
        """Returns the flag that an expression reads, as `FLAGS.batch_size`, or ""."""
        holder, _, name = literals.dotted(node).rpartition(".")
        return name if holder in self.holders and name in self.by_name else ""

    def rows(self, settings: Mapping[str, str]) -> str:
        """Returns the setting that has the value of a flag `batch_size`, or "".

        It is there where an example is a batch, of as many rows as the loop makes, so that the
        `settings` have a `batch_size` of their own.
        """
        flag = self.by_name.get("batch_size")
        if flag is None or settings.get(flag.name, flag.default) == flag.default:
            return ""
        name = scopes.free("rows", self.by_name)
        self.by_name[name] = flag._replace(name=name)
        return name

    def switches(self) -> dict[str, bool]:
        """Returns the defaults of flags that are true or false, by what reads them."""
        found = {n: f.default == "True" for n, f in self.by_name.items() if f.kind == "bool"}
        return {f"{holder}.{n}": value for holder in self.holders for n, value in found.items()}

    def read_in(self, node: ast.AST) -> set[str]:
        """Returns the flags that are read anywhere in a node."""
        return {self.read(n) for n in ast.walk(node) if isinstance(n, ast.Attribute)} - {""}


def _parses(node: Any) -> bool:
    return isinstance(node, ast.Call) and last(node) in ("parse_args", "parse_known_args")
