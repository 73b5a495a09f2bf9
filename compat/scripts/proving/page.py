"""The page of a proof: one HTML file, which loads nothing and follows the light or dark theme."""

from __future__ import annotations

import html as escape
from typing import Sequence

from compat.scripts.proving.values import Gap

_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --line: #8886; --good: #1a7f37; --bad: #cf222e; }}
@media (prefers-color-scheme: dark) {{ :root {{ --good: #3fb950; --bad: #ff7b72; }} }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem;
  padding: 0 1rem; }}
h1 {{ font-size: 1.3rem; }}
.equal {{ color: var(--good); }}
.differ, tr.differ td {{ color: var(--bad); }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ border-bottom: 1px solid var(--line); padding: .2rem .6rem; text-align: left; }}
th {{ white-space: nowrap; vertical-align: top; }}
td.number {{ text-align: right; }}
code, .operation {{ font-family: ui-monospace, monospace; font-size: .9em; }}
</style>
<h1 class="{state}">{verdict}</h1>
<ul>{about}</ul>
{findings}
<h2>Losses</h2>
<table>
<tr><th>Training call<th>Loss<th>A<th>B<th>Relative difference<th>Tolerance</tr>
{losses}
</table>
</html>
"""


def html(
    verdict: str,
    is_equal: bool,
    about: Sequence[str],
    findings: Sequence[tuple[str, str]],
    losses: Sequence[tuple[int, str, Gap]],
) -> str:
    """Returns the page.

    Args:
      verdict: The result, in one line.
      is_equal: Whether the two runs are equal.
      about: Lines about the two runs.
      findings: Labels and texts that describe the difference.
      losses: For each loss, its training call, its name and both values.
    """
    text = escape.escape
    rows = "\n".join(
        f'<tr class="{"differ" if gap.differs else ""}"><td class=number>{call}'
        f"<td><code>{text(name)}</code><td class=number>{gap.a:.9g}<td class=number>{gap.b:.9g}"
        f"<td class=number>{gap.error:.2g}<td class=number>{gap.tolerance:.2g}</tr>"
        for call, name, gap in losses
    )
    finding_rows = "\n".join(
        f"<tr><th>{text(a)}<td class=operation>{text(b)}</tr>" for a, b in findings
    )
    return _PAGE.format(
        title="Proof: " + ("equal" if is_equal else "differ"),
        state="equal" if is_equal else "differ",
        verdict=text(verdict),
        about="".join(f"<li>{text(line)}" for line in about),
        findings=f"<h2>Difference</h2>\n<table>\n{finding_rows}\n</table>" if findings else "",
        losses=rows,
    )
