"""Plants a bug: a function of the product, with one passage of its text replaced, takes the function's place."""

from __future__ import annotations
import __future__

import contextlib
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType, ModuleType


@contextlib.contextmanager
def planted(owner: type | ModuleType, name: str, passage: str, instead: str) -> Iterator[None]:
    """Within it ``owner.name`` has ``instead`` where its source has ``passage``, which must stand there exactly once: when the code
    changes, the test that plants says so, and someone looks whether the bug is still the bug."""
    function = vars(owner)[name]
    assert isinstance(function, FunctionType), f"{name} is no plain function"
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(passage) == 1, f"{passage!r} stands {source.count(passage)} times in:\n{source}"
    code = compile(source.replace(passage, instead), f"<planted {name}>", "exec", flags=__future__.annotations.compiler_flag)
    # The planted function sees the module's own names, so that other patches still reach it.
    made: dict[str, object] = {}
    exec(code, function.__globals__, made)
    setattr(owner, name, made[name])
    try:
        yield
    finally:
        setattr(owner, name, function)
