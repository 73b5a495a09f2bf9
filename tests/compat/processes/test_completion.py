"""Names and flags complete in bash, and are those that `--help` prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(shutil.which("bash") is None, reason="completion is for bash"),
]
# Readline's part: the words of a line, of which "=" is one.
PRESS_TAB = """
%s() { "$PYTHON" -m "$FUNCNAME" "$@"; }
eval "$(%s completion bash)"
while read -r COMP_LINE; do
    COMP_LINE=${COMP_LINE%%_} COMP_POINT=${#COMP_LINE}
    IFS=' ' read -ra COMP_WORDS <<<"${COMP_LINE//=/ = }"
    [[ $COMP_LINE == *[\\ =] ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _%s 2>/dev/null  # It is no completion that sets an option of one.
    echo "${COMPREPLY[*]}"
done
"""


def press_tab(command: str, *lines: str) -> list[str]:
    """Returns what bash shows for each line; one shell, which keeps the flags."""
    done = subprocess.run(
        ["bash", "-c", PRESS_TAB % (command, command, command)],
        input="".join(f"{line}_\n" for line in lines),  # The mark keeps a space at the end.
        env=dict(os.environ, PYTHON=sys.executable),
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return done.stdout.splitlines()


def test_programs_and_their_flags() -> None:
    names, one, flag, either, value, other, file = press_tab(
        "experiments",
        "experiments ",
        "experiments mn",
        "experiments mnist --mod",
        "experiments mnist --strategy=ps --syn",
        "experiments mnist --runtime=l",
        "experiments launch --max",
        "experiments mnist --logdir=ru",
    )
    assert {"launch", "mnist", "sweep"} <= set(names.split())
    assert (one, flag, either, value) == ("mnist", "--model=", "--sync", "legacy")
    assert (other, file) == ("--max_restarts=", "")  # Bash completes files itself.


def test_commands_of_compat() -> None:
    found = press_tab("compat", "compat d", "compat run --era=", "compat convert-checkpoint --h")
    assert found == ["doctor", "auto 0.x 1.x", "--help"]


def test_another_shell_is_refused_in_one_line() -> None:
    for command in ("compat", "experiments"):
        argv = [sys.executable, "-m", command, "completion", "csh"]
        refused = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert refused.returncode == 2
        assert refused.stderr == (
            "error: completion is for bash, not for csh; add to ~/.bashrc: "
            f'eval "$({command} completion bash)"\n'
        )
