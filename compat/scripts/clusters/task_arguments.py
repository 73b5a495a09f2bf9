"""Determines how a program receives its task: by flags that it defines, or by variables."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Iterable, Mapping, Sequence

from compat.cluster.environment import tf_config
from compat.cluster.spec import Task
from compat.errors import UserError
from compat.scripts.reading import conversion, literals, modules

_JOB = ("job_name", "job-name", "jobname", "job", "job_type", "task_type", "role")
_INDEX = (
    *("task_index", "task-index", "task_id", "task-id", "taskid", "task", "index", "task_num"),
    "worker_index",
)
_HOSTS = {
    "ps": ("ps_hosts", "ps-hosts", "parameter_servers", "ps", "ps_host", "pss"),
    "worker": ("worker_hosts", "worker-hosts", "workers", "worker", "worker_host"),
    "chief": ("chief_hosts", "chief-hosts", "chief", "master_hosts"),
    "cluster": ("cluster_spec",),
}


# A program with one of these reads TF_CONFIG, and starts a server from it.
_BY_TF_CONFIG = re.compile("TF_CONFIG|RunConfig|train_and_evaluate|learn_runner")


@dataclass(frozen=True)
class Spelling:
    """How a program receives its task: by templates with {job}, {index} and hosts, or by TF_CONFIG.

    Attributes:
      arguments: Templates of command-line arguments.
      tf_config: Whether the program reads TF_CONFIG.
      variables: Templates of environment variables, by name.
      defaults: The default addresses in the program, by job.
    """

    arguments: Sequence[str]
    tf_config: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def words(self, job: str, index: int | str, hosts: Mapping[str, Sequence[str]]) -> list[str]:
        """Returns the arguments of one task; `hosts` has the addresses of each job."""
        return [_filled(word, job, index, hosts) for word in self.arguments]

    def environment(self, task: Task, hosts: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Returns the environment of one task; `hosts` has the addresses of each job."""
        variables = {
            name: _filled(w, task.job, task.index, hosts) for name, w in self.variables.items()
        }
        return {**variables, **({"TF_CONFIG": tf_config(hosts, task)} if self.tf_config else {})}


def _filled(template: str, job: str, index: int | str, hosts: Mapping[str, Sequence[str]]) -> str:
    known = {"ps": "", "worker": "", "chief": ""}
    known.update({name: ",".join(addresses) for name, addresses in hosts.items()})
    known.update(job=job, index=str(index))
    known["cluster"] = ",".join(f"{name}|{';'.join(hosts[name])}" for name in hosts)
    for name in re.findall(r"\{(\w*)\}", template):
        if name not in known:
            raise UserError(
                f"task arguments have {{{name}}}, expected one of {', '.join(known)} in "
                "braces; write them as in '--job={job} --id={index}'"
            )
    return re.sub(r"\{(\w+)\}", lambda m: known[m[1]], template)


def spelling(parts: Iterable[conversion.Source], given: Sequence[str], script: str) -> Spelling:
    """Infers how a script receives its task; leaves out flags that are already `given`.

    Flags that the script does not define may be defined in one of its modules.
    """
    parts = list(parts)
    trees = []
    for part in parts:
        try:
            trees.append(part.tree())
        except SyntaxError as error:
            place = f"{part.filename}:{error.lineno or 1}"
            raise UserError(f"{place}: {error.msg}; correct the script") from None
    own_modules = modules.parts(script)
    for known in (trees, [*trees, *(part.tree() for part in own_modules)]):
        by_flag = by_flags(known, given)
        if by_flag is not None:
            return by_flag
    variables = _variables([*trees, *(part.tree() for part in own_modules)])
    if variables:
        return Spelling((), variables=variables)
    if _BY_TF_CONFIG.search("".join(part.text for part in [*parts, *own_modules])):
        return Spelling((), tf_config=True)
    if {1, 2} <= {index for tree in trees for index in _positions(tree)}:
        return Spelling(("{job}", "{index}"))
    raise UserError(
        f"{script} does not show how it receives its task: expected flags such as --job_name and "
        "--task_index, variables such as JOB_NAME and TASK_INDEX, TF_CONFIG, or sys.argv; "
        "add --task_args='--job={job} --id={index}'"
    )


def _variables(trees: Iterable[ast.Module]) -> dict[str, str]:
    """Returns templates of the variables by which a program reads its task, or {}."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    read = [n.slice for n in nodes if isinstance(n, ast.Subscript) and _is_environment(n.value)]
    for call in nodes:
        func = getattr(call, "func", None)
        if isinstance(call, ast.Call) and call.args and isinstance(func, ast.Attribute):
            is_read = func.attr == "getenv" or _is_environment(func.value)
            read += call.args[:1] if is_read else []
    names = {literals.text(node).lower(): literals.text(node) for node in read}
    kinds = {"job": _JOB, "index": _INDEX, **_HOSTS}
    names_by_kind = {kind: [names[w] for w in words if w in names] for kind, words in kinds.items()}
    if not (names_by_kind["job"] and names_by_kind["index"]):
        return {}
    return {ways[0]: f"{{{kind}}}" for kind, ways in names_by_kind.items() if ways}


def _is_environment(node: ast.expr) -> bool:
    return literals.dotted(node).rpartition(".")[2] == "environ"


def by_flags(trees: Iterable[ast.Module], given: Sequence[str]) -> Spelling | None:
    """Returns the flags by which a program reads its task, as templates such as "--job_name={job}".

    Returns None if the program does not define a flag for the job and one for the index.

    Args:
      trees: the syntax trees of the program.
      given: the user's own arguments; no template is made for a flag with hosts that is among them.
    """
    calls = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Call)]
    flags = [flag for call in calls for flag in literals.flags(call)]
    numbers = {flag for call in calls if _is_number(call) for flag in literals.flags(call)}
    job = next((flag for flag in _JOB if flag in flags), None)
    index = next((flag for flag in _INDEX if flag in flags), None)
    if job is None or index is None:
        return None
    places = [name for call in calls for name in _positional(call)]
    templates = {job: "{job}", index: "{index}"}
    arguments = [f"--{name}={word}" for name, word in templates.items() if name not in places]
    for kind, names in _HOSTS.items():
        templates.update((name, f"{{{kind}}}") for name in names)
    # The arguments of the user come first.
    open_places = places[_count_positional(given) :]
    arguments = [*(templates[name] for name in open_places if name in templates), *arguments]
    defaults: dict[str, list[str]] = {}
    for kind, names in _HOSTS.items():
        # A flag with a number is the number of servers, as in `--ps=2`.
        known = set(flags) - numbers - set(places)
        hosts = next((name for name in names if name in known), None)
        if hosts is not None and not any(word.startswith(f"--{hosts}") for word in given):
            arguments.append(f"--{hosts}={{{kind}}}")
            call = next(call for call in calls if hosts in literals.flags(call))
            words = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "default")]
            texts = [literals.text(word) for word in words]
            defaults[kind] = [part.strip() for text in texts for part in text.split(",")]
    return Spelling(arguments, defaults=defaults)


def _is_number(call: ast.Call) -> bool:
    kinds = [word.value for word in call.keywords if word.arg == "type"]
    called = literals.dotted(call.func)
    return called.endswith("DEFINE_integer") or any(literals.dotted(k) == "int" for k in kinds)


def _positional(call: ast.Call) -> list[str]:
    """Yields the name of the positional argument that a call of argparse defines."""
    is_argparse = literals.dotted(call.func).rpartition(".")[2] == "add_argument"
    names = [literals.text(word) for word in call.args] if is_argparse else []
    return [name for name in names if name and not name.startswith("-")]


def _count_positional(words: Sequence[str]) -> int:
    """Returns how many words are neither flags nor values of flags."""
    before = ["", *words]
    return sum(
        not word.startswith("-") and (not last.startswith("-") or "=" in last)
        for last, word in zip(before, words)
    )


def _positions(tree: ast.Module) -> set[int]:
    """Returns the indices of `sys.argv` that a program reads."""
    return {
        literals.value(node.slice)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "argv"
    }
