"""Completes the names and flags of a console command in bash, from what its `--help` prints.

    eval "$(experiments completion bash)"    # In ~/.bashrc; `compat completion bash` likewise.

The flags of a program are asked for when Tab is first pressed after its name, and kept by the
shell, so none is missing or out of date. Values that a flag can only take from a list complete too.
"""

from __future__ import annotations

import contextlib
import io
import re
from typing import Callable, Iterable, Sequence

from compat.errors import UserError

_NAME = r"--(?P<no>\[no\])?(?P<name>\w[\w-]*)"
_CHOICES = r"(?:(?:=|: )<(?P<words>[^<>]+)>| \{(?P<set>[^{}]+)\}|(?P<value>:| [A-Z]+))?"
# At the start of a line of help, or after the first of several names.
_FLAG = re.compile(rf"(?:^  (?:-\w(?: [A-Z]+)?, )?|, ){_NAME}{_CHOICES}")
_SCRIPT = """\
declare -A _NAME_words
_NAME() {
    local line=${COMP_LINE:0:COMP_POINT} program=${COMP_WORDS[1]} words hidden=""
    local current=${line##*[[:space:]]}
    if ((COMP_CWORD == 1)); then
        program=""
    elif [[ $current != -* ]]; then
        return  # A file.
    fi
    if [[ -z ${_NAME_words[:$program]} ]]; then
        _NAME_words[:$program]=$("${COMP_WORDS[0]}" completion words $program 2>/dev/null)
    fi
    words=${_NAME_words[:$program]}
    if [[ $current == *=* ]]; then
        # A "=" usually parts words, of which bash replaces the last.
        [[ $COMP_WORDBREAKS == *=* ]] && hidden=${current%%=*}=
    else
        words=$(sed 's/=.*/=/' <<<"$words" | uniq)
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    COMPREPLY=("${COMPREPLY[@]#"$hidden"}")
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _NAME NAME
"""


def main(
    command: str, argv: Sequence[str], programs: Iterable[str], show_help: Callable[[str], object]
) -> int:
    """Runs `COMMAND completion`: prints the script, or the words that it asks for.

    Args:
      command: the console command that is completed.
      argv: what follows `completion`.
      programs: the names that the command takes first.
      show_help: prints the help of one of them; may exit.

    Raises:
      UserError: the shell is not bash.
    """
    if list(argv) == ["bash"]:
        print(_SCRIPT.replace("NAME", command), end="")
    elif argv[:1] == ["words"]:
        print(*(flags(_printed(show_help, argv[1])) if argv[1:] else sorted(programs)), sep="\n")
    else:
        raise UserError(
            f"completion is for bash, not for {' '.join(argv) or 'no shell'}; add to ~/.bashrc: "
            f'eval "$({command} completion bash)"'
        )
    return 0


def flags(text: str) -> list[str]:
    r"""Returns the flags in a help text of argparse or absl, in its order.

    >>> flags("  --model=<mlp|cnn>: Network.\n  --[no]sync: Average.\n  --epochs: Passes.")
    ['--model=mlp', '--model=cnn', '--sync', '--nosync', '--epochs=']
    """
    found = []
    for line in text.splitlines():
        flag = _FLAG.match(line)
        while flag is not None:
            name = f"--{flag['name']}"
            choices = flag["words"] or flag["set"]
            if choices:
                found += [f"{name}={choice}" for choice in re.split("[|,]", choices)]
            elif flag["no"]:
                found += [name, f"--no{flag['name']}"]
            else:
                found.append(f"{name}=" if flag["value"] else name)
            flag = _FLAG.match(line, flag.end())
    return found


def _printed(show_help: Callable[[str], object], program: str) -> str:
    with io.StringIO() as text, contextlib.redirect_stdout(text):
        with contextlib.suppress(SystemExit):
            show_help(program)
        return text.getvalue()
