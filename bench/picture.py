"""The results as a picture: for each case a bar of ours and of each peer, longer is better."""

import html

from results import figure

WIDTH, LABEL, BAR, ROW, GAP, TOP = 920, 300, 420, 22, 16, 64
COLOURS = {"ours": "#6b3fa0", "peer": "#9aa5b1", "limit": "#d5dbe1"}


def bars_of(line):
    """(name, median, kind) of what gave a value; ours first. None without somebody beside."""
    bars = [("Verbena", line.ours.median, "ours")]
    bars += [(peer.name, series.median, "limit" if peer.is_limit else "peer")
             for peer, series in line.peers]
    bars = [bar for bar in bars if bar[1]]
    return bars if len(bars) > 1 else []


def text(x, y, words, **attributes):
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x}" y="{y}"{more}>{html.escape(words)}</text>'


def case_picture(line, top):
    """The elements of one case, and where the next begins."""
    case, bars = line.case, bars_of(line)
    better = min if case.less_is_better else max
    best = better(value for _, value, _ in bars)
    parts = [text(16, top + 15, f"{case.site}: {case.what}", font_weight="600")]
    for number, (name, value, kind) in enumerate(bars):
        y = top + number * ROW
        share = best / value if case.less_is_better else value / best
        parts.append(text(LABEL + 4, y + 15, name, text_anchor="end", fill="#46505a"))
        parts.append(f'<rect x="{LABEL + 12}" y="{y + 2}" width="{max(share * BAR, 1):.1f}" '
                     f'height="{ROW - 5}" rx="2" fill="{COLOURS[kind]}"/>')
        parts.append(text(LABEL + 20 + share * BAR, y + 15, f"{figure(value)} {case.unit}"))
    return parts, top + len(bars) * ROW + GAP


def svg(lines, caption):
    parts, top = [], TOP
    for line in lines:
        if line.ours.median and bars_of(line):
            more, top = case_picture(line, top)
            parts += more
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" '
        f'height="{top}" font-family="system-ui, sans-serif" font-size="13" role="img" '
        f'aria-label="Verbena beside its peers">',
        f'<rect width="{WIDTH}" height="{top}" fill="#ffffff"/>',
        text(16, 26, "Verbena beside its peers, and the machine's limit", font_size="17",
             font_weight="700"),
        text(16, 46, f"Medians; longer bars are better. {caption}", fill="#46505a"),
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"
