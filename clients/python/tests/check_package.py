"""Builds the wheel and the sdist, installs the wheel into an empty environment, and runs the examples of the README there.

Usage: python tests/check_package.py FOLDER-OF-WHEELS
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: object, cwd: Path = ROOT) -> None:
    """Runs a command, and ends the program if it fails."""
    print("+", *command, flush=True)
    subprocess.run([str(word) for word in command], check=True, cwd=cwd)


def main(wheels: Path) -> None:
    """Does what the first lines say."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The wheel is built of the sdist, so that the sdist is whole.
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
        (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
        files = zipfile.ZipFile(wheel).namelist()
        assert "cellserver_client/py.typed" in files, files
        assert any(file.endswith("licenses/LICENSE") for file in files), files
        with tarfile.open(sdist) as archive:
            names = [Path(member).name for member in archive.getnames()]
        assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"} <= set(names), names

        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--find-links", wheels]
        run(*install, f"{wheel}[django,drf,fastapi,hiredis,limits,opentelemetry]")
        # Each module imports with what the package itself asks for.
        modules = sorted(Path(f).stem for f in files if f.endswith(".py") and not f.endswith("__init__.py"))
        imports = "; ".join(f"import cellserver_client.{module}" for module in modules)
        imports = f"import django.conf; django.conf.settings.configure(); {imports}"
        run(python, "-W", "error", "-c", imports, cwd=folder)
        run(*install, "fastapi", "flask-limiter", "httpx2", "pytest")
        tests = folder / "project" / "tests"
        tests.mkdir(parents=True)
        for file in ("README.md", "tests/test_readme.py"):
            (folder / "project" / file).write_text((ROOT / file).read_text(encoding="utf-8"), encoding="utf-8")
        run(python, "-m", "pytest", "-q", "tests", cwd=folder / "project")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
