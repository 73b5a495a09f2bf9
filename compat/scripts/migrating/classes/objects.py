"""The objects of a class: several, as one of a class each, and one of a class that stays."""

from __future__ import annotations

import ast
import functools
from typing import Any

from compat.scripts.migrating.classes.members import refused, taken
from compat.scripts.migrating.steps import inlining, order
from compat.scripts.migrating.steps.kinds import Kinds
from compat.scripts.migrating.steps.pieces import Pieces
from compat.scripts.rules.program import Edit, Program
from compat.scripts.source import literals, scopes

_SHARED = (
    *(ast.Call, ast.List, ast.Dict, ast.Set),
    *(ast.ListComp, ast.DictComp, ast.SetComp),
)


def holders(program: Program, names: set[str]) -> list[Any]:
    """Returns other classes whose objects have or are given objects of these, outer ones first."""
    classes = {n.name: n for n in program.nodes(ast.ClassDef) if n.name not in names}
    functions = {n.name: n.args.args for n in program.nodes(ast.FunctionDef)}
    assigns = [n for n in program.nodes(ast.Assign) if isinstance(n.value, ast.Call)]
    found: list[Any] = []
    words: set[str] = set()  # Names of such objects.
    while True:
        known = names | {node.name for node in found}
        made = [s for s in assigns if literals.dotted(s.value.func) in known]
        words |= {s.targets[0].id for s in made if isinstance(s.targets[0], ast.Name)}
        has = {s for s in made if isinstance(s.targets[0], ast.Attribute)}
        more = {name for name, node in classes.items() if has & {*ast.walk(node)}}
        count = len(words)
        for call in program.nodes(ast.Call):
            given: list[Any] = [
                *zip(functions.get(literals.dotted(call.func), call.args), call.args)
            ]
            given += [(k, k.value) for k in call.keywords]
            given = [p for p, a in given if literals.dotted(getattr(a, "func", a)) in known | words]
            more |= {literals.dotted(call.func)} if given else set()
            words |= {p.arg for p in given if literals.dotted(call.func) in functions}
        more = more & {*classes} - known
        if not more and len(words) == count:
            return found
        found = [*(classes[name] for name in sorted(more)), *found]


def assigned(program: Program, name: str) -> Program:
    """Returns a program that assigns an object of a class to a name, as of `Model().train()`.

    And of `run(Model(), steps)`, if what is evaluated before it is no call.
    """
    edits: list[Edit] = []
    for call in program.nodes(ast.Call):
        statement: Any = call
        if literals.dotted(call.func) != name:
            continue
        while not isinstance(statement, ast.stmt):
            statement = program.parents[statement]
        alone = Pieces(program).alone(statement)
        is_whole = isinstance(statement, ast.Assign) and statement.value is call
        if is_whole or not isinstance(statement, (ast.Expr, ast.Assign, ast.Return)) or not alone:
            continue
        (start, end), line = program.span(call), alone[0]
        outer = [n for n in ast.walk(statement) if isinstance(n, ast.Call) and n is not call]
        is_first = all(call in ast.walk(n) or program.span(n) > (start, end) for n in outer)
        parents: list[Any] = [n for n in ast.walk(statement) if call in ast.walk(n)]
        if not is_first or any(isinstance(n, order.ELSEWHERE) for n in parents):
            continue
        word = scopes.free(name.lower(), taken(program))
        indent = program.text[line : program.span(statement)[0]]
        made = f"{indent}{word} = {program.text[start:end]}\n"
        edits += [Edit(line, line, made), Edit(start, end, word)]
    return program.after(edits) if edits else program


def apart(program: Program, name: str) -> tuple[Program, list[str]]:
    """Returns a program in which each object of a class has one of its own, and their names.

    The objects share nothing but constants of the class: what they share of the graph, as by the
    `reuse` of a variable scope, is decided by the calls of TensorFlow, which stay.
    """
    found = [n for n in program.nodes(ast.ClassDef) if n.name == name]
    node: Any = found[-1]
    inside, parents = {*ast.walk(node)}, program.parents
    own: list[Any] = [n for n in program.nodes(ast.Name) if n.id == name]
    calls: list[Any] = [n for n in own if getattr(parents[n], "func", None) is n]
    if len(found) > 1 or len(calls) < 2 or inside & {*calls}:
        return program, [name]
    for statement in node.body:
        nodes = ast.walk(statement.value) if isinstance(statement, ast.Assign) else ()
        if any(isinstance(n, _SHARED) for n in nodes):
            why = f"{len(calls)} objects of it are made, which share what this makes"
            refused(program, name, statement, why)
    pieces, names, copies = Pieces(program), [name], ""
    edits: list[Edit] = []
    end = pieces.lines(node)[1]
    for call in sorted(calls, key=order.place)[1:]:
        word = scopes.free(name, {*taken(program), *names})
        named = [Edit(*program.span(n), word) for n in own if n in inside]
        copies += "\n\n" + pieces.take([node], [pieces.renamed(node, word), *named], "")
        edits.append(Edit(*program.span(call), word))
        names.append(word)
    return program.after([Edit(end, end, copies), *edits]), names


def with_runners(program: Program, tf: str, name: str) -> Program:
    """Returns a program with the functions that run an object where they are called with it."""
    return inlining.inlined(program, tf, functools.partial(_runs, name))


def _runs(name: str, program: Program, function: inlining.Function) -> bool:
    """Whether a function runs a session, and its only call is given an object of a class."""
    kinds, calls = Kinds(program, function.tf), inlining.calls(program, function)
    if len(calls) != 1 or not kinds.uses_session(function.node):
        return False
    made = [s for s in program.nodes(ast.Assign) if isinstance(s.value, ast.Call)]
    own = [s for s in made if literals.dotted(s.value.func) == name]
    objects = scopes.bound(target for s in own for target in s.targets)
    given = [*calls[0].args, *(word.value for word in calls[0].keywords)]
    return not objects.isdisjoint(getattr(node, "id", "") for node in given)
