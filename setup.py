"""What a wheel holds of the files that a checkout has next to its packages (`PROJECT_ROOT` in rc1_lib/workspace)."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

INSIDE = "rc1_lib/_project"
SHIPPED = (
    "LICENSE", "constraints.txt", "pyproject.toml",
    "configs/*.yaml", "configs/judge/*.yaml", "templates/*/*.json", "models/embedded/*",
)  # fmt: skip
"""By name, never a whole folder: a run writes `configs/weights.json`, and policies below `models`."""


class BuildWithProject(build_py):
    """Copies them into the package, but for an editable installation, which has the checkout itself."""

    def run(self) -> None:
        """Build the packages, then copy."""
        if self.editable_mode:
            super().run()
            return
        shutil.rmtree(self.build_lib, ignore_errors=True)  # or what an earlier build left there would be shipped too
        super().run()
        for source, target in self._shipped():
            self.mkpath(str(target.parent))
            self.copy_file(str(source), str(target))

    def get_source_files(self) -> list[str]:
        """What a source distribution takes along."""
        return [*super().get_source_files(), *(str(source) for source, _ in self._shipped())]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """What the build has written."""
        shipped = () if self.editable_mode else self._shipped()
        return [*super().get_outputs(include_bytecode), *(str(target) for _, target in shipped)]

    def _shipped(self) -> Iterator[tuple[Path, Path]]:
        for pattern in SHIPPED:
            found = sorted(path for path in Path().glob(pattern) if path.is_file())
            if not found:
                raise SystemExit(f"{pattern}: found no such file, expected what a wheel ships; build from a checkout")
            yield from ((path, Path(self.build_lib, INSIDE, path)) for path in found)


setup(cmdclass={"build_py": BuildWithProject})
