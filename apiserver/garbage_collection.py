"""When Python looks for cyclic garbage: not while the server starts, seldom once it serves. And what the C library keeps of freed memory.

Reference counts free what requests leave behind, but for the few cycles that exceptions and tasks make. The collector is still needed for
those; at its default settings it runs after each 700 allocations that outlive their frame, and every run of the oldest generation walks
all modules, schemas and caches: 5 to 25 % of the CPU time of a write.
"""

from __future__ import annotations

import gc

#: Objects that may come before the youngest generation is looked at. A request makes some hundred that live until its end, so that
#: dozens of requests in flight stay below it; a cycle of garbage waits that much longer, which is some megabytes at most.
YOUNG_OBJECTS_MAX = 20_000
#: Collections of one generation before the next older one is looked at.
GENERATION_RUNS_MAX = 20


def pause() -> None:
    """While modules are loaded and caches filled: nothing of that is garbage."""
    gc.disable()


def settle() -> None:
    """All that is there now stays for good, and is never looked at again (a first look at it would hold up requests for a tenth of a
    second, to free next to nothing). Then collect seldom."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, GENERATION_RUNS_MAX, GENERATION_RUNS_MAX)
    gc.enable()


def give_back() -> None:
    """Let the C library return memory that was freed (glibc's ``malloc_trim``; other libraries keep less of it). What thousands of TLS
    connections leave is in pieces that it would hold for good, and not even use again for the next thousands."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
