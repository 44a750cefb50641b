# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""What kzero-bench --json has found, as a table and as a picture.

Usage: report.py RESULTS [--picture FILE] [--limit FACTOR]

RESULTS has one JSON object a line. Of what is there several times the best ratio
counts. With --limit the exit code is 1 when a ratio misses its target by more than
this factor; what small sizes say too little of is not judged. The picture is an SVG
of one page.
"""
import argparse
import json
import math
import re
import sys
from xml.sax.saxutils import escape

HEAD = ("case", "what", "ratio", "spread", "target", "met")
NUMBERS = {"ratio", "spread", "target"}


# What --limit does not judge: of small sizes on busy cores it says too little
# (docs/performance.md).
NOT_JUDGED = (("C1", r"8 MiB: .*(_block|bytes) / library"),
              ("C2", r""),
              ("C3", r"/ 0\.2 ms"),
              ("S1", r"loop over the bytes"),
              ("S1", r"2 ranks, .*from MPI calls"),
              ("H1", r""), ("H2", r""), ("H3", r""))


class BadResults(Exception):
    pass


def read(lines):
    results = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            result = json.loads(line)
            keys = ({"case", "what"} if "absent" in result else
                    {"case", "what", "ratio", "spread", "goal", "target"})
            missing = keys - result.keys()
        except (ValueError, TypeError, AttributeError):
            raise BadResults(
                f"line {number} is no JSON object: {line.strip()}") from None
        if missing:
            raise BadResults(f"line {number} lacks {', '.join(sorted(missing))}")
        results.append(result)
    return results


def score(result):
    """How the ratio compares with its target: 1 or more where it is met."""
    if "absent" in result:
        return None
    ratio, target = result["ratio"], result["target"]
    # A ratio that is no number is null in JSON.
    if ratio is None or not 0 < ratio < math.inf:
        return 0.0
    return ratio / target if result["goal"] == "at_least" else target / ratio


def name_of(result):
    """Of what was measured, without the speed that it had."""
    return result["case"], re.sub(r" \([\d.]+ GB/s\)$", "", result["what"])


def best_of_each(results):
    best = {}
    for result in results:
        name = name_of(result)
        if name not in best or (score(result) or 0) > (score(best[name]) or 0):
            best[name] = result
    return list(best.values())


def is_judged(result):
    return not any(result["case"] == case and re.search(what, result["what"])
                   for case, what in NOT_JUDGED)


def is_far(result, limit):
    value = score(result)
    return value is not None and value * limit < 1


def number(value):
    return "none" if value is None else f"{value:.3f}"


def target_text(result):
    sign = ">=" if result["goal"] == "at_least" else "<="
    return f"{sign} {number(result['target'])}"


def row(result):
    if "absent" in result:
        return (result["case"], result["what"], result["absent"], "", "", "")
    return (result["case"], result["what"], number(result["ratio"]),
            number(result["spread"]), target_text(result),
            "yes" if score(result) >= 1 else "no")


def table(results):
    rows = [HEAD] + [row(result) for result in results]
    widths = [max(len(each[i]) for each in rows) for i in range(len(HEAD))]
    lines = []
    for each in rows:
        cells = (cell.rjust(width) if name in NUMBERS else cell.ljust(width)
                 for name, cell, width in zip(HEAD, each, widths))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


# The picture: a bar a result, on a logarithmic axis around the target.
LABEL, CASE, BARS, NUMBERS_WIDTH, ROW = 470, 40, 300, 150, 15
DECADES = 1.0  # to either side
MET, MISSED, QUIET = "#2a6f97", "#c8553d", "#667"


def text(x, y, content, anchor="start", fill="#223", weight="normal"):
    return (f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{fill}" '
            f'font-weight="{weight}">{escape(content)}</text>')


def bar(result, y, middle):
    value = score(result)
    reach = BARS / 2
    way = math.log10(value) / DECADES if value > 0 else -1.0
    length = max(-1.0, min(1.0, way)) * reach
    x = middle + min(0.0, length)
    return (f'<rect class="bar" x="{x:.1f}" y="{y - 8:g}" '
            f'width="{max(abs(length), 1):.1f}" height="9" '
            f'fill="{MET if value >= 1 else MISSED}"/>')


def picture(results):
    width = CASE + LABEL + BARS + NUMBERS_WIDTH + 20
    height = 60 + ROW * len(results) + 20
    middle = CASE + LABEL + BARS / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="10">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        text(10, 20, "kzero-bench: ratios against their targets (right of the "
             "line: met)", weight="bold")]
    for power in (-1, 0, 1):
        x = middle + power * BARS / 2 / DECADES
        parts.append(f'<line x1="{x:g}" y1="42" x2="{x:g}" '
                     f'y2="{height - 15}" stroke="#bbc"/>')
        name = "target" if power == 0 else f"{10.0 ** power:g} x"
        parts.append(text(x, 37, name, "middle", QUIET))
    parts.append(text(width - 10, 37, "ratio (target)", "end", QUIET))
    for place, result in enumerate(results):
        y = 56 + ROW * place
        first = place == 0 or results[place - 1]["case"] != result["case"]
        if first:
            parts.append(text(10, y, result["case"], weight="bold"))
        parts.append(text(CASE, y, result["what"]))
        if "absent" in result:
            parts.append(text(middle + 6, y, result["absent"], fill=QUIET))
            continue
        parts.append(bar(result, y, middle))
        parts.append(text(width - 10, y,
                          f"{number(result['ratio'])} ({target_text(result)})",
                          "end"))
    return "\n".join(parts + ["</svg>", ""])


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results")
    parser.add_argument("--picture", metavar="FILE")
    parser.add_argument("--limit", type=float, metavar="FACTOR")
    options = parser.parse_args(arguments)
    try:
        with open(options.results, encoding="utf-8") as file:
            results = best_of_each(read(file))
        if results:
            print(table(results))
        if options.picture:
            with open(options.picture, "w", encoding="utf-8") as file:
                file.write(picture(results))
    except (OSError, BadResults) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    far = [each for each in results
           if options.limit and is_far(each, options.limit)]
    for result in far:
        if not is_judged(result):
            print(f"not judged: {result['case']} {result['what']} "
                  f"{number(result['ratio'])}, target {target_text(result)}",
                  file=sys.stderr)
    far = [each for each in far if is_judged(each)]
    for result in far:
        print(f"error: {result['case']} is more than {options.limit:g} times "
              f"off its target: {result['what']} {number(result['ratio'])}, "
              f"target {target_text(result)}", file=sys.stderr)
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
