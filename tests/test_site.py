"""The site has four ways of at most five pages each; superseded decisions name the later one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[1]
WAYS = ("Learn", "Old scripts", "Experiments", "Operations")
RECORDS = sorted((ROOT / "docs" / "adr").glob("*.md"))


def pages(way: str) -> list[str]:
    """Returns the pages of a tab of the site, in order."""
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2].partition("\n\n")[0]
    entries: list[dict[str, Any]] = yaml.safe_load(nav)
    (tab,) = [entry[way] for entry in entries if way in entry]
    return [page for entry in tab for page in entry.values()]


@pytest.mark.parametrize(("number", "way"), list(enumerate(WAYS)), ids=WAYS)
def test_the_front_page_lists_the_pages_of_each_way_in_order(number: int, way: str) -> None:
    front = (ROOT / "docs" / "index.md").read_text("utf-8").split("\n## ")[1 : len(WAYS) + 1]
    listed = re.findall(r"^\d\. \[.*?\]\((\S+)\)", front[number], re.MULTILINE)
    assert listed == [page.replace("start.md", "../README.md") for page in pages(way)]
    assert len(listed) <= 5


def test_records_have_a_title_each() -> None:
    titles = [record.read_text("utf-8").splitlines()[0] for record in RECORDS]
    assert [re.findall(r"^# (\d+)\. \S", title) for title in titles] == [
        [str(int(record.name[:4]))] for record in RECORDS
    ]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name[:4])
def test_a_superseded_record_links_to_the_later_one_below_its_title(record: Path) -> None:
    title, _, text = record.read_text("utf-8").partition("\n")
    later = re.search(r" \(superseded (?:in part )?by (\d+)\)$", title)
    below = text.partition("\n## ")[0]
    links = re.findall(r"\]\((\d{4})-\S+\.md\)", below)
    assert [int(number) for number in links] == ([int(later[1])] if later else [])
    assert all(int(number) > int(record.name[:4]) for number in links)
