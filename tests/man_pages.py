#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the manual pages that were made with the headers and the libraries; with --groff, has groff read them.

- Each public function that a library exports has a page, and so has each public inline function.
- Each prototype on a page compiles beside the header that the page names: the compiler refuses one that differs.
- No page lacks a section that each call has.
- With --groff only this: groff has no warning. Exit status 77 if there is no groff.
"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "CONTEXT", "EXAMPLE", "SEE ALSO"]
# Calls of MPI itself that a library intercepts or stands behind are MPI's to document.
OURS = r"(contd_(?!_)\w+|MPIX_\w+|MPI_Continue\w*|MPI_Request_get_status_(all|any|some))$"


def exported(nm, library):
    out = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines() if line.split()[-2] in "TW"}


def plain(page):
    """The text of a page's source, without fonts and escapes."""
    text = re.sub(r"\\f[BIPR]", "", page.read_text())
    return text.replace("\\-", "-").replace("\\(aq", "'").replace("\\&", "")


def read_by_groff(folder):
    if not shutil.which("groff"):
        print("groff is not here: the package groff-base has it")
        return 77
    pages = [page.relative_to(folder) for page in sorted(folder.glob("man?/*.[137]"))]
    result = subprocess.run(["groff", "-man", "-ww", "-z", *pages], cwd=folder, capture_output=True, text=True)
    print(f"{len(pages)} pages\n{result.stderr}")
    return 1 if result.returncode or result.stderr or not pages else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=Path, required=True)
    parser.add_argument("--groff", action="store_true")
    parser.add_argument("--cc")
    parser.add_argument("--nm")
    parser.add_argument("libraries", nargs="*")
    args = parser.parse_args()
    if args.groff:
        sys.exit(read_by_groff(args.pages))
    wrong = []
    pages = sorted((args.pages / "man3").glob("*.3"))
    names = {page.stem for page in pages}

    for library in args.libraries:
        found = {name for name in exported(args.nm, library) if re.match(OURS, name)}
        if not found:
            wrong.append(f"{library} exports no public function")
        wrong += [f"{name} of {Path(library).name} has no page" for name in sorted(found - names)]
    include = Path(__file__).resolve().parent.parent / "include/contd"
    source = (include / "contd.h").read_text() + (include / "executor.h").read_text()
    inline = re.findall(r"^static inline [^(]*?(contd_(?!_)\w+)\(", source, re.M)
    wrong += [f"the inline {name} has no page" for name in inline if name not in names]

    lines = []
    for page in pages:
        text = plain(page)
        if text.startswith(".so "):
            if not (args.pages / text.split()[1]).exists():
                wrong.append(f"{page.name}: {text.strip()} is not there")
            continue
        wrong += [f"{page.name}: no section {section}" for section in SECTIONS if f"\n.SH {section}\n" not in text]
        synopsis = text.split(".SH SYNOPSIS\n")[1].split(".fi\n")[0]
        if f"{page.stem}(" not in synopsis:
            wrong.append(f"{page.name}: not its own prototype")
        lines += [line for line in synopsis.split("\n") if not line.startswith(".")]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "synopses.c"
        source.write_text("\n".join(lines) + "\n")
        command = args.cc.split() + ["-std=gnu11", "-fsyntax-only", "-Wall", "-Werror", str(source)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            wrong.append(f"the synopses do not compile:\n{result.stderr}")
    if len(pages) < 40:
        wrong.append(f"{len(pages)} pages only")

    overviews = sorted((args.pages / "man7").glob("*.7"))
    if not overviews:
        wrong.append("no page in man7")
    if not (args.pages / "man1/contd.1").exists():
        wrong.append("no page contd(1)")
    for line in wrong:
        print(line)
    print(f"{len(pages)} pages in man3, {len(overviews)} in man7, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


main()
