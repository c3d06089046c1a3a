"""The SDK works without the extra, and says what is missing where it is asked for."""

import subprocess
import sys

WITHOUT = "import sys; sys.modules['opentelemetry'] = None; import ramet, ramet.client; "


def run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_without_the_extra_its_import_names_it() -> None:
    done = run(WITHOUT + "import ramet.otlp")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        'ImportError: ramet.otlp needs the extra "otlp": pip install "ramet[otlp]"'
    )


def test_without_the_extra_the_rest_is_there() -> None:
    done = run(WITHOUT + "print(ramet.Client.__name__)")
    assert (done.returncode, done.stdout) == (0, "Client\n")


def test_the_sdk_does_not_import_it_by_itself() -> None:
    done = run("import sys, ramet; print([name for name in sys.modules if name.startswith('opentelemetry')])")
    assert done.stdout == "[]\n"
