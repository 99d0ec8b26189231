"""What a machine can check of the whole tree: lint, types, import contracts, purity, words that do not belong."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("apiserver", "storage", "controllers")
#: rooms that touch no socket, file, clock, thread, event loop, logger or global random
PURE = (
    *(
        "apiserver/machinery",
        "apiserver/cel",
        "apiserver/resources",
        "storage/raft",
        "storage/api.py",
        "storage/errors.py",
        "storage/verify.py",
    ),
    *(f"storage/backend/{name}.py" for name in ("backend", "memory_backend", "schema", "write_buffer")),
    *(f"storage/mvcc/{name}.py" for name in ("revision", "key_index", "tree_index", "kv_codec", "kv_hash", "read_txn", "write_txn")),
    *(f"storage/watch/{name}.py" for name in ("event_batch", "history", "watcher_group")),
    *(f"storage/member/{name}.py" for name in ("applier", "consistent_index", "metrics", "quota", "request", "snapshotter", "txn", "wait")),
    *(f"storage/member/{name}.py" for name in ("peer_codec", "peer_metrics", "peer_urls")),
    "storage/lease",
    "storage/wal/record.py",
)
IMPURE_MODULES = {"asyncio", "socket", "threading", "time", "logging", "os", "pathlib", "subprocess", "ssl", "aiohttp", "uvicorn", "lmdb"}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        path = ROOT / folder
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def run(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_lint() -> None:
    run("ruff", "check", ".")


@pytest.mark.slow
def test_types() -> None:
    run("mypy")


@pytest.mark.slow
def test_import_contracts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_pure_rooms_import_nothing_that_acts() -> None:
    wrong = []
    for path in sources(*PURE):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wrong += [f"{path.relative_to(ROOT)}: {name}" for name in names if name.split(".")[0] in IMPURE_MODULES]
    assert not wrong, wrong


def test_only_the_object_store_uses_the_store() -> None:
    """And the wiring, which builds it."""
    modules = ("server", "embedded_store", "external_etcd", "store_door", "tls")
    allowed = ("apiserver/objectstore/", "apiserver/cli/", *(f"apiserver/{module}.py" for module in modules))
    wrong = []
    for path in sources("apiserver"):
        where = str(path.relative_to(ROOT))
        if where.startswith(allowed):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wrong += [f"{where}: {name}" for name in names if name.split(".")[0] == "storage"]
    assert not wrong, wrong


def test_every_module_says_what_it_is() -> None:
    silent = [str(p.relative_to(ROOT)) for p in sources(*PACKAGES) if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent, silent


def test_no_empty_files_and_no_stubs() -> None:
    """A function of the packages whose whole body raises NotImplementedError is a promise that was not kept."""
    wrong = []
    for path in sources(*PACKAGES):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong, wrong
