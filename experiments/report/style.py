"""The style sheet of the report, for light and dark mode, and for wide and narrow screens."""

from __future__ import annotations

# Colours that people with any colour vision can tell apart (Okabe and Ito, 2008); lighter ones for
# a dark background.
_LIGHT = ("#0072b2", "#d55e00", "#008a63", "#b14a8a", "#8a6d00", "#3a8fb7", "#555555", "#7a3fb0")
_DARK = ("#5ab4f0", "#ff9a4d", "#3dd6a3", "#f09ac8", "#e6c84a", "#9adcf5", "#bbbbbb", "#c39af0")
NUMBER_OF_COLOURS = len(_LIGHT)


def _variables(colours: tuple[str, ...]) -> str:
    return " ".join(f"--c{i}: {colour};" for i, colour in enumerate(colours))


_COLOURS = "\n".join(
    f".c{i} {{ stroke: var(--c{i}); fill: var(--c{i}); background: var(--c{i}); }}"
    for i in range(NUMBER_OF_COLOURS)
)

STYLE = f"""
:root {{ color-scheme: light dark; --back: #ffffff; --text: #1c1f23; --weak: #5c6570;
  --rule: #d9dee3; --mark: #fff3c4; --good: #3a8f5c; --bad: #c0392b; --stopped: #b07d12;
  --open: #8a94a0; {_variables(_LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ --back: #14171a; --text: #e6e9ec;
  --weak: #9aa4ae; --rule: #343a41; --mark: #4a3f12; --good: #4fb37a; --bad: #ef6a5a;
  --stopped: #d9a93a; --open: #7c8691; {_variables(_DARK)} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 1180px; padding: 16px; background: var(--back);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 1.5em; margin: 0 0 8px; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.2em; margin: 32px 0 8px; border-bottom: 1px solid var(--rule); }}
h3 {{ font-size: 1em; margin: 16px 0 4px; overflow-wrap: anywhere; }}
.note {{ color: var(--weak); margin: 4px 0; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: 3px 12px 3px 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--rule); font-variant-numeric: tabular-nums; }}
td {{ overflow-wrap: anywhere; min-width: 5em; }}
th {{ font-weight: 600; }}
tr.differs td, tr.differs th {{ background: var(--mark); }}
.grid {{ display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); }}
figure {{ margin: 0; min-width: 0; max-width: 580px; }}
figcaption {{ font-weight: 600; }}
svg {{ display: block; width: 100%; height: auto; }}
svg text {{ font-size: 11px; fill: var(--weak); }}
svg line {{ stroke: var(--rule); stroke-width: 1; }}
{_COLOURS}
polyline {{ stroke-width: 2; stroke-linejoin: round; }}
polyline[class] {{ fill: none; }}
.train {{ stroke-width: 1.2; stroke-opacity: .55; }}
.evaluator {{ stroke-dasharray: 6 4; }}
circle.test {{ stroke: var(--text); stroke-width: 1.5; }}
rect.good {{ fill: var(--good); }} rect.bad {{ fill: var(--bad); }}
rect.stopped {{ fill: var(--stopped); }} rect.open {{ fill: var(--open); }}
.legend span {{ margin-right: 16px; overflow-wrap: anywhere; }}
.legend i {{ display: inline-block; width: 12px; height: 12px; border-radius: 3px;
  margin-right: 6px; vertical-align: -1px; }}
.samples img {{ margin: 0 6px 6px 0; max-width: 100%; image-rendering: pixelated;
  border: 1px solid var(--rule); }}
details > summary {{ cursor: pointer; color: var(--weak); }}
@media (max-width: 600px) {{ th, td {{ font-size: 13px; padding-right: 8px; }}
  td {{ min-width: 4em; }} }}
"""
