"""The two wheels hold every file of their packages: type stubs, migrations, templates."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.containers.dockerfile import ROOT

_WHEELS = {
    "ramet_server": (ROOT, ["ramet_server", "session_service", "telemetry", "tree_service"]),
    "ramet": (ROOT / "clients" / "python", ["ramet"]),
}


@pytest.mark.parametrize("distribution", _WHEELS)
def test_a_wheel_holds_every_file_of_its_packages(distribution: str, tmp_path: Path) -> None:
    folder, packages = _WHEELS[distribution]
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=folder, check=True)
    (wheel,) = tmp_path.glob(f"{distribution}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = {
        str(path.relative_to(folder))
        for package in packages
        for path in (folder / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert held == files
