#!/usr/bin/env python3
"""Record where windows begin, according to Python's zoneinfo, in boundaries.txt beside this file.

    python3 calendar/testdata/boundaries.py [ZONEINFO]

zoneinfo reads the files of calendar/tzdata.zip, so both sides have the same release. With
ZONEINFO, a folder of another zoneinfo of the same release, such as that of the package tzdata of
PyPI, the script writes nothing, and names the zones that differ.

Each line has a zone and a checksum for each unit: the first 8 bytes of the SHA-256 of the
beginnings of all windows from 1970 to 2040, for the rules below one after the other. A beginning is
a Unix time as 8 bytes, little-endian. A window without length is left out.
"""

import calendar
import datetime
import hashlib
import multiprocessing
import pathlib
import struct
import sys
import tempfile
import zipfile
import zoneinfo

HERE = pathlib.Path(__file__).resolve().parent
FIRST, LAST = 1970, 2040

# The rules of each unit: times of the day as hour and minute, days of the week from Monday on, days
# of the month, and months with days. calendar/boundaries_test.go has the same.
RULES = {
    "DAY": [(0, 0), (0, 30), (1, 0), (2, 0), (2, 30), (3, 0), (23, 30)],
    "WEEK": [1, 7],
    "MONTH": [1, 15, 31],
    "YEAR": [(1, 1), (2, 29), (4, 6), (10, 31)],
}


def dates(unit, rule):
    """Yield the local time at which each window begins."""
    if unit in ("DAY", "WEEK"):
        day = datetime.datetime(FIRST, 1, 1)
        while day.year <= LAST:
            if unit == "DAY":
                yield day.replace(hour=rule[0], minute=rule[1])
            elif day.isoweekday() == rule:
                yield day
            day += datetime.timedelta(days=1)
        return
    for year in range(FIRST, LAST + 1):
        if unit == "YEAR":
            month, day = rule
            yield datetime.datetime(year, month, min(day, calendar.monthrange(year, month)[1]))
            continue
        for month in range(1, 13):
            yield datetime.datetime(year, month, min(rule, calendar.monthrange(year, month)[1]))


EPOCH = datetime.datetime(1970, 1, 1)
SECOND = datetime.timedelta(seconds=1)


def beginning(tz, local):
    """Return the Unix time of a local time: with fold=0, the first of two.

    Where the transitions of a file end and its rule for later years begins, zoneinfo may answer a
    fold=0 that the clock never shows, as in America/Nuuk at 2023-10-28 23:30. The one that it shows is
    the answer then.
    """
    first, second = (local.replace(tzinfo=tz, fold=fold) for fold in (0, 1))
    at = (local - EPOCH - first.utcoffset()) // SECOND
    if first.utcoffset() != second.utcoffset():
        later = (local - EPOCH - second.utcoffset()) // SECOND
        shows = [datetime.datetime.fromtimestamp(t, tz).replace(tzinfo=None, fold=0) == local for t in (at, later)]
        if shows == [False, True]:
            return later
    return at


def checksums(zone):
    """Return the line for a zone."""
    tz = zoneinfo.ZoneInfo(zone)
    words = [zone]
    for unit, rules in RULES.items():
        sums = hashlib.sha256()
        for rule in rules:
            before = None
            for local in dates(unit, rule):
                at = beginning(tz, local)
                if at != before:
                    sums.update(struct.pack("<q", at))
                before = at
        words.append(sums.hexdigest()[:16])
    return " ".join(words)


def lines(folder, zones):
    """Return the lines for the zones. Zones with the same file are computed once."""
    data = {zone: pathlib.Path(folder, zone).read_bytes() for zone in zones}
    first = {}
    for zone in zones:
        first.setdefault(data[zone], zone)
    with multiprocessing.Pool(initializer=zoneinfo.reset_tzpath, initargs=([str(folder)],)) as pool:
        computed = dict(zip(first, pool.map(checksums, first.values(), chunksize=4)))
    return [" ".join([zone] + computed[data[zone]].split()[1:]) for zone in zones]


def main():
    release = (HERE.parent / "RELEASE").read_text().strip()
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(HERE.parent / "tzdata.zip") as archive:
            archive.extractall(folder)
            zones = archive.namelist()
        if len(sys.argv) > 1:
            other = pathlib.Path(sys.argv[1])
            missing = [zone for zone in zones if not (other / zone).is_file()]
            zones = [zone for zone in zones if zone not in missing]
            ours, theirs = lines(folder, zones), lines(other, zones)
            differ = [a.split()[0] for a, b in zip(ours, theirs) if a != b]
            print(f"{len(zones)} zones compared, {len(missing)} missing: {missing}, {len(differ)} differ: {differ}")
            return
        text = f"# {release}: zone, DAY, WEEK, MONTH, YEAR; written by boundaries.py\n"
        (HERE / "boundaries.txt").write_text(text + "\n".join(lines(folder, zones)) + "\n")


if __name__ == "__main__":
    main()
