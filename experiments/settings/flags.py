"""Settings from a command line: a flag for each, a file, a preset, and help in groups."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import Any, Mapping, Sequence

from absl import flags

from compat.errors import UserError
from experiments.settings.base import check_class
from experiments.settings.files import read_settings, text_of
from experiments.settings.setting import GROUPS, bounds, kind_of

flags.disclaim_key_flags()  # So that the program's --help shows them.

_DEFINE = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}
_OF_A_PROCESS = {"job_name", "task_index", "ps_hosts", "worker_hosts", "parameter_servers"}
_OF_A_PROCESS |= {"workers", "config", "print_config", "preset"}


def define_flags(
    settings: Any,
    presets: Mapping[str, Any] | None = None,
    groups: Sequence[str] = GROUPS,
    values: flags.FlagValues = flags.FLAGS,
) -> None:
    """Defines a flag for each setting, and those that are about this process.

    Args:
      settings: the settings class.
      presets: values for several settings at once, by name.
      groups: whose settings become flags.
      values: takes the flags.

    Raises:
      UserError: a setting has no help, an unsupported type, or the name of another flag.
    """
    check_class(settings)
    for field in dataclasses.fields(settings):
        meta = field.metadata
        if field.name in _OF_A_PROCESS:
            raise UserError(f"setting {field.name!r} has the name of a flag; choose another name")
        if meta["group"] not in groups:
            continue
        kind, _ = kind_of(field)
        limits = "" if meta["choices"] else bounds(field)
        words = f"{meta['help']} ({limits})" if limits else meta["help"]
        where = {"flag_values": values, "module_name": meta["group"]}
        if meta["choices"]:
            flags.DEFINE_enum(field.name, field.default, meta["choices"], words, **where)
        else:
            _DEFINE[kind](field.name, field.default, words, **where)
    if "cluster" in groups:
        _define_task(values)
    where = {"flag_values": values, "module_name": "recording"}
    flags.DEFINE_string("config", None, "File of settings, YAML or JSON; flags win.", **where)
    flags.DEFINE_bool("print_config", False, "Print the settings as YAML, and exit.", **where)
    if presets:
        flags.DEFINE_enum(
            "preset",
            None,
            list(presets),
            "Values for several settings at once; flags and --config win.",
            flag_values=values,
            module_name="training",
        )


def _define_task(values: flags.FlagValues) -> None:
    where: dict[str, Any] = {"flag_values": values, "module_name": "cluster"}
    flags.DEFINE_string(
        "job_name", None, "Job of this process: ps, worker, chief or evaluator.", **where
    )
    flags.DEFINE_integer("task_index", 0, "Index of this process within its job.", **where)
    flags.DEFINE_string(
        "ps_hosts", None, "host:port of each parameter server, comma-separated.", **where
    )
    flags.DEFINE_string("worker_hosts", None, "host:port of each worker, comma-separated.", **where)
    flags.DEFINE_alias("parameter_servers", "ps_hosts", **where)
    flags.DEFINE_alias("workers", "worker_hosts", **where)


def define_allow_network() -> None:
    """Defines the flag without which no cluster extends beyond this machine."""
    flags.DEFINE_bool(
        "allow_network",
        False,
        "Let tasks be on other machines: everyone who reaches their ports can run code there.",
    )


def settings_from_flags(
    values: flags.FlagValues, settings: Any, presets: Mapping[str, Mapping[str, Any]] | None = None
) -> Any:
    """Returns the settings: defaults, in place of these a preset, a file, and the flags.

    Args:
      values: the parsed flags.
      settings: the settings class.
      presets: by name, what --preset stands for.

    Raises:
      UserError: a value is wrong, or two contradict each other.
    """
    check_end(values)
    found: dict[str, Any] = {}
    if presets and values.preset is not None:
        found.update(presets[values.preset])
    if values.config is not None:
        try:
            of_file = read_settings(values.config, settings)
            settings(**of_file)
        except UserError as error:
            text = str(error)
            source = "" if text.startswith("--config") else f"--config={values.config}: "
            raise UserError(source + text) from error
        found.update(of_file)
        if values["epochs"].present:
            found.pop("max_steps", None)
    for field in dataclasses.fields(settings):
        if field.name in values and values[field.name].present:
            found[field.name] = values[field.name].value
    # The place of this process is said by flags that a file does not have.
    made = settings(**found)
    for field in dataclasses.fields(settings):
        if field.name in values and not values[field.name].present:
            values[field.name].value = getattr(made, field.name)
    return made


def check_end(values: flags.FlagValues) -> None:
    """Verifies that the flags say in one way when a run ends.

    Raises:
      UserError: they do in two.
    """
    if values.max_steps is not None and values["epochs"].present:
        raise UserError(
            f"--epochs={values.epochs} and --max_steps={values.max_steps} both say when to end; "
            "give one of them"
        )


def print_config(settings: Any) -> None:
    """Prints the settings as YAML, as --config reads them."""
    print(text_of(settings), end="")


def help_text(values: flags.FlagValues, width: int = 100) -> str:
    """Returns the help of all flags, in groups; "" of a program without groups."""
    by_module = values.flags_by_module_dict()
    lines: list[str] = []
    for group in GROUPS:
        own = by_module.get(group, [])
        if own:
            lines += ["", f"{group}:"]
        for flag in sorted(own, key=lambda flag: flag.name):
            is_bool = flag.flag_type() == "bool"
            name = f"--[no]{flag.name}" if is_bool else f"--{flag.name}"
            if getattr(flag.parser, "enum_values", None):
                name += f"=<{'|'.join(flag.parser.enum_values)}>"
            default = (
                "" if flag.default is None else f" Default: {flag.default_as_str.strip(chr(39))}."
            )
            words = f"{flag.help}{default}"
            lines += textwrap.wrap(
                f"  {name}: {words}", width, subsequent_indent="      ", break_long_words=False
            )
    return "\n".join(lines[1:])
