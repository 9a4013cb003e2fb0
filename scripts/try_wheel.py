"""Test a wheel in a new environment of each installed Python, outside of the checkout.

python scripts/try_wheel.py dist [--python 3.12] [--lowest]

Runs `unlazy --version`, `list`, `demo` and `compare` at small sizes, and `play --check`; stops at
the first command that fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.11", "3.12", "3.13")
COMMANDS = (
    ["--version"],
    ["list", "claims"],
    ["demo", "--scale", "smoke", "--out", "page.html"],
    [
        "compare",
        "parity",
        "--set",
        "d=8",
        "--learner",
        "linear",
        "--learner",
        "quadratic",
        "--n",
        "60",
        "--seeds",
        "2",
        "--budget",
        "2",
    ],
    ["new", "task", "halfspace"],
    ["play", "--check"],
    ["cite", "shi2022/table1"],
)


def check_contents(wheel: Path) -> None:
    """Check that the wheel has the package, its page, templates and type markers, and no tests,
    documents or results.
    """
    names = zipfile.ZipFile(wheel).namelist()
    outside = [name for name in names if not name.startswith(("unlazy/", "unlazy-"))]
    needed = {
        "unlazy/py.typed",
        "unlazy/play/page/page.html",
        "unlazy/play/page/player.js",
        "unlazy/cli/templates/task.py.txt",
    }
    wrong = [
        name for name in names if name.endswith((".pyc", ".sqlite", ".ipynb")) or "/tests/" in name
    ]
    if outside or wrong or not needed <= set(names):
        sys.exit(
            f"{wheel.name}: outside of the package {outside}, wrong {wrong}, lacking "
            f"{needed - set(names)}"
        )
    print(
        f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 1e6:.2f} MB, and nothing "
        "that does not belong there."
    )


def interpreter(version: str) -> str | None:
    """Return a working Python of this version; a shim may exist without one."""
    for name in (
        f"python{version}",
        *sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))),
    ):
        found = shutil.which(name)
        right = f"import sys; sys.exit('{version}' != '%d.%d' % sys.version_info[:2])"
        if found and subprocess.run([found, "-c", right], capture_output=True).returncode == 0:
            return found
    return None


def attempt(python: str, version: str, wheel: Path, constraints: Path | None) -> None:
    """Run all commands in a new environment."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        place = Path(folder)
        subprocess.run([python, "-m", "venv", place / "env"], check=True)
        pip = [
            place / "env/bin/pip",
            "install",
            "--quiet",
            *(["--constraint", constraints] if constraints else []),
            wheel,
        ]
        subprocess.run(pip, check=True)
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment = kept | {
            "UNLAZY_STORE": str(place / "store.sqlite"),
            "HOME": folder,
            "XDG_CACHE_HOME": str(place / "cache"),
        }
        for command in COMMANDS:
            ran = subprocess.run(
                [place / "env/bin/unlazy", *command],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
            )
            if ran.returncode:
                sys.exit(
                    f"Python {version}: unlazy {' '.join(command)} ended with "
                    f"{ran.returncode}:\n{ran.stdout}{ran.stderr}"
                )
            print(
                f"Python {version}: unlazy {' '.join(command)}: "
                f"{(ran.stdout.strip() or ' ').splitlines()[-1][:100]}"
            )
        print(
            f"Python {version}: all {len(COMMANDS)} commands work "
            f"({time.perf_counter() - begin:.0f} s with installing)."
        )


def main() -> None:
    """Parse the command line and run the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", action="append", help="only these versions")
    parser.add_argument(
        "--lowest", action="store_true", help="with the oldest supported versions of what it needs"
    )
    given = parser.parse_args()
    wheel = max(given.folder.resolve().glob("unlazy-*.whl"), key=lambda path: path.stat().st_mtime)
    check_contents(wheel)
    tried = 0
    for version in given.python or VERSIONS:
        python = interpreter(version)
        if python is None:
            print(f"Python {version} is not here, and not tried.")
            continue
        attempt(python, version, wheel, ROOT / "constraints-lowest.txt" if given.lowest else None)
        tried += 1
    if not tried:
        sys.exit("No Python was tried.")


if __name__ == "__main__":
    main()
