"""What TensorFlow writes before its log can be set is held back, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from compat._tensorflow import startup


def test_standard_error_may_be_closed() -> None:
    source = (
        "import sys; from compat import tf; assert sys.stderr is None; print(tf.constant(1.5) + 1)"
    )
    command = ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, source]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=500, check=False)
    assert (done.returncode, b"shape=()" in done.stdout) == (0, True)  # Eager from 2.0 on.


NOTES = b"""\
2026-11-22 03:18:02.364799: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
E0000 00:00:1795317495.364799   15622 cuda_dnn.cc:8310] Unable to register cuDNN factory
I0000 00:00:1795317495.364799   15622 grpc_server_lib.cc:464] Started server with target: grpc://x:1
I0000 00:00:1795317495.364799   15622 eager_service_impl.cc:356] SessionOptions: device_count {
  key: "CPU"
  value: 1
}
allow_soft_placement: true

W0000 00:00:1795317663.532997   16730 context.cc:1755] Unable to destroy server_ object, so
"""
OTHERS = b"""\
E0000 00:00:1795317495.364799   15622 server.cc:1] could not listen
key: "of a program"
Traceback (most recent call last):
"""


def test_notes_are_held_back(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with startup.without_notes():
        os.write(2, NOTES)
    assert capfdbinary.readouterr().err == b""


def test_everything_else_appears(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with pytest.raises(ValueError, match="the body failed"), startup.without_notes():
        os.write(2, NOTES + OTHERS)
        raise ValueError("the body failed")
    assert capfdbinary.readouterr().err == OTHERS


def test_the_last_words_of_a_process_that_aborts_appear() -> None:
    """TensorFlow logs a fatal error, and calls `abort`, from which Python hears nothing."""
    program = (
        "import os\n"
        "from compat._tensorflow import startup\n"
        "with startup.without_notes():\n"
        "    os.write(2, b'F0000 server.cc:1] Check failed: port is taken\\n')\n"
        "    os.abort()\n"
    )
    process = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, timeout=60)
    assert process.returncode == -signal.SIGABRT
    assert process.stderr == b"F0000 server.cc:1] Check failed: port is taken\n"
