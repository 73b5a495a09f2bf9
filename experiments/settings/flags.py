"""Settings from a command line: a flag for each, a file, a preset, and help in groups."""

from __future__ import annotations

import dataclasses
import re
import sys
import textwrap
from typing import Any, Mapping, Sequence

from absl import flags

from compat.errors import UserError
from experiments.settings.base import Settings
from experiments.settings.files import read_settings
from experiments.settings.setting import (
    GROUPS,
    PROCESS_FLAGS,
    bounds,
    check_class,
    kind_of,
    wrong,
)

flags.disclaim_key_flags()  # So that the program's --help shows them.

_DEFINE = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}


def define_flags(
    settings: Any,
    presets: Mapping[str, Any] | None = None,
    groups: Sequence[str] = GROUPS,
    values: flags.FlagValues = flags.FLAGS,
) -> None:
    """Defines a flag for each setting of a class that is in one of the groups.

    For the group "cluster" it also defines the flags of this process, such as --job_name,
    --config and --dry_run.
    """
    check_class(settings)
    for field in dataclasses.fields(settings):
        if field.metadata["group"] not in groups:
            continue
        try:
            _define(field, values)
        except flags.Error as error:
            reason = "has the name of another flag; choose another name"
            raise wrong(settings, field.name, reason) from error
    if presets:
        where = {"flag_values": values, "module_name": "training"}
        words = "Values for several settings at once; --config and flags take precedence."
        flags.DEFINE_enum("preset", None, list(presets), words, **where)
    if "cluster" in groups:
        _define_process_flags(values)
        where = {"flag_values": values, "module_name": "recording"}
        words = "File of settings (YAML or JSON), as settings.yaml of a log folder; "
        flags.DEFINE_string("config", None, words + "flags take precedence.", **where)
        flags.DEFINE_bool("print_config", False, "Print the settings as YAML, and exit.", **where)
        words = "Show a batch and the model, make one update and one evaluation, and exit; all in "
        words += "this process, with --strategy=ps as well."
        flags.DEFINE_bool("dry_run", False, words, flag_values=values, module_name="training")
        words = "Show all frames of an error, and not those of your program alone."
        flags.DEFINE_bool("traceback", False, words, **where)


def define_task_flags(*names: str, values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags of a task, such as --job_name, for a program that is not an experiment.

    Flags for the settings `names` are defined as well.
    """
    for field in dataclasses.fields(Settings):
        if field.name in names:
            _define(field, values)
    _define_process_flags(values)


def _define(field: Any, values: flags.FlagValues) -> None:
    """Defines the flag of a field of settings."""
    meta, limits = field.metadata, bounds(field)
    words = f"{meta['help']} Bounds: {limits}." if limits else meta["help"]
    where = {"flag_values": values, "module_name": meta["group"]}
    if meta["choices"]:
        flags.DEFINE_enum(field.name, field.default, meta["choices"], words, **where)
    else:
        kind, _ = kind_of(field.name, field.type)
        _DEFINE[kind](field.name, field.default, words, **where)


def _define_process_flags(values: flags.FlagValues) -> None:
    where: dict[str, Any] = {"flag_values": values, "module_name": "cluster"}
    words = "Job of this process: ps, worker, chief or evaluator."
    flags.DEFINE_string("job_name", None, words, **where)
    flags.DEFINE_integer("task_index", 0, "Index of this process within its job.", **where)
    for name, whose in (("ps_hosts", "parameter servers"), ("worker_hosts", "workers")):
        words = f"Addresses host:port of all {whose}, comma-separated."
        flags.DEFINE_string(name, None, words, **where)
    flags.DEFINE_alias("parameter_servers", "ps_hosts", **where)
    flags.DEFINE_alias("workers", "worker_hosts", **where)


def settings_from_flags(
    values: flags.FlagValues, settings: Any, presets: Mapping[str, Mapping[str, Any]] | None = None
) -> Any:
    """Returns the settings: defaults, overridden by a preset, then a file, then the flags.

    Then each flag that is not on the command line is set to the value that the settings have.
    """
    check_end(values)
    found: dict[str, Any] = {}
    if presets and values.preset is not None:
        found.update(presets[values.preset])
    if values.config is not None:
        found.update(read_settings(values.config, settings))
    if values["epochs"].present:
        found.pop("max_steps", None)  # It would take precedence over --epochs.
    names = [field.name for field in dataclasses.fields(settings)]
    found.update({name: values[name].value for name in names if values[name].present})
    made = settings(**found)
    for name in names:
        if not values[name].present:
            values[name].value = getattr(made, name)
    return made


def check_end(values: flags.FlagValues) -> None:
    """Raises a `UserError` if --epochs and --max_steps are both given: each ends the run."""
    if values["max_steps"].present and values.max_steps is not None and values["epochs"].present:
        raise UserError(
            f"--epochs={values.epochs} and --max_steps={values.max_steps} both say when to end; "
            "give one of them"
        )


def help_text(values: flags.FlagValues, everything: bool) -> str:
    """Returns the help of the flags, in groups; "" for a program without groups.

    For an experiment, unless `everything` is set, this is only a line for each setting that it
    adds, and for each of the groups "data" and "training".
    """
    by_group = values.flags_by_module_dict()
    groups = {group: by_group[group] for group in GROUPS if group in by_group}
    if groups and sys.argv[0] in by_group:  # Flags of the program that are not settings.
        groups = {"program": by_group[sys.argv[0]], **groups}
    if everything or "training" not in groups:
        found = [(group, _whole(flag)) for group, own in groups.items() for flag in own]
    else:
        known = {field.name for field in dataclasses.fields(Settings)} | PROCESS_FLAGS
        own = [flag for group in groups.values() for flag in group if flag.name not in known]
        shared = [f for group in ("data", "training") for f in groups[group] if f not in own]
        found = [("of this experiment", _short(flag)) for flag in own]
        found += [("training", _short(flag)) for flag in shared]
    lines: list[str] = []
    for i, (group, text) in enumerate(found):
        if i == 0 or found[i - 1][0] != group:
            lines += ["", f"{group}:"]
        lines += text
    if groups and not everything and "training" in groups:
        others = "--logdir, --runtime, --strategy=ps, --config and --eval_in_chief"
        lines += ["", f"--help=all explains all flags, such as {others}."]
    return "\n".join(lines[1:])


def _whole(flag: flags.Flag) -> list[str]:
    """Returns the lines that explain a flag."""
    name = f"--[no]{flag.name}" if flag.boolean else f"--{flag.name}"
    choices, words = _choices(flag)
    name += f"=<{'|'.join(choices)}>" if choices else ""
    if flag.default not in (None, ""):
        words += f" Default: {flag.default_as_str[1:-1]}."
    return _wrapped(f"  {name}: {words}", 6)


def _short(flag: flags.Flag) -> list[str]:
    """Returns a line with a flag, its default and the beginning of its help, and its choices."""
    default = "" if flag.default is None else flag.default_as_str[1:-1]
    name = f"--[no]{flag.name}" if flag.boolean else f"--{flag.name}={default}"
    choices, words = _choices(flag)
    words = re.split(r"[.;] ", f"{words} ")[0].rstrip(".")
    if not all(choice in words for choice in choices):
        words += f": {', '.join(choices)}"
    return _wrapped(f"  {name:<25} {words}", 28)


def _choices(flag: flags.Flag) -> tuple[Sequence[str], str]:
    """Returns the choices of a flag, and its help without the choices, which absl puts first."""
    choices = getattr(flag.parser, "enum_values", None) or ()
    return choices, flag.help.partition(">: ")[2] if choices else flag.help


def _wrapped(line: str, indent: int) -> list[str]:
    return textwrap.wrap(line, 100, subsequent_indent=" " * indent, break_long_words=False)
