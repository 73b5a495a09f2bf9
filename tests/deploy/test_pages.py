"""The pages on old documents and on other tools: what they say is true, and shown by tests."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from compat.cluster.liveness.shared_folder import complaint
from compat.cluster.spec import Task

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "seeds" / f"{n}.md" for n in ("000-containers", "001-shared-folder")]


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_contradiction_is_said_like_this() -> None:
    (block,) = [block for block in blocks(PAGES[0], "sh") if "TF_CONFIG" in block]
    (line,) = [text for text in blocks(PAGES[0], "text") if text.startswith("error: ")]
    export, command = block.splitlines()
    name, _, value = shlex.split(export)[1].partition("=")
    done = subprocess.run(
        [sys.executable, *shlex.split(command)[1:]],
        env={**os.environ, name: value},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
    )
    assert (done.returncode, done.stdout.decode()) == (2, line)


def test_folder_that_is_not_shared_is_said_like_this() -> None:
    first, second = [text for text in blocks(PAGES[1], "text") if text.startswith("error: ")]
    chief = Task("worker", 0)
    apart = {"/job:ps/task:0": "/mnt/cephfs-of-ps/mnist"}
    assert first == f"error: {complaint(chief, '/mnt/cephfs/mnist', apart)}\n"
    assert second == f"error: {complaint(chief, '/logs', {'/job:worker/task:1': '/logs'})}\n"


def test_each_feature_of_the_comparison_is_shown_by_tests() -> None:
    page = ROOT / "docs" / "comparison.md"
    table = page.read_text(encoding="utf-8").split("| this project | shown by |\n|---|---|\n")[1]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) > 20
    for feature, links in rows:
        files = re.findall(r"\]\(\.\./(tests/[\w/]+/test_\w+\.py)\)", links)
        assert len(files) == links.count("](") > 0, feature
        for file in files:
            assert "\ndef test_" in (ROOT / file).read_text(encoding="utf-8"), file


def test_citation_is_of_this_release() -> None:
    metadata = configparser.ConfigParser()
    metadata.read(str(ROOT / "setup.cfg"), encoding="utf-8")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    said = {key: citation[key] for key in ("title", "version", "license", "abstract")}
    said["author"] = citation["authors"][0]["name"]
    names = {"title": "name", "abstract": "description"}
    assert said == {key: metadata["metadata"][names.get(key, key)] for key in said}
