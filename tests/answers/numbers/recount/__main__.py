"""Computes the numbers of a command once more, from what `ppt dump` says.

    python3 recount CHECK FOLDER PPT PPT_ANALYSIS

CHECK is a file of this folder, FOLDER has the captures and their list. Every number that differs is a
line on stdout; with any, it exits with 1. Only the standard library is needed.
"""

import importlib
import json
import pathlib
import sys

import dumped


def main(check, folder, ppt):
    tools = dumped.Tools(ppt)
    module = importlib.import_module(f"check_{check}")
    found = dumped.Found()
    entries = json.loads((pathlib.Path(folder) / "captures.json").read_text())
    captures = [dumped.Capture(pathlib.Path(folder), entry, tools) for entry in entries]
    # A check looks at each capture, or at all of them together.
    checks = [(capture.name, module.check, capture) for capture in captures if hasattr(module, "check")]
    if hasattr(module, "check_all"):
        checks.append(("all", module.check_all, {capture.name: capture for capture in captures}))
    for found.name, compare, what in checks:
        try:
            compare(what, found)
        except dumped.Failed as error:
            found.say(str(error))
    print(f"{check}: {found.compared} numbers compared, {len(found.lines)} differ")
    print("\n".join(found.shown()))
    if not found.compared:
        sys.exit(f"{check} compared nothing")
    sys.exit(1 if found.lines else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
