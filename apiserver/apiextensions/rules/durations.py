"""How long rules of custom resources take to compile and to run, under the names of kube-apiserver (apiserver ``cel/metrics``). Of the
whole process, as there."""

from __future__ import annotations

from apiserver.metrics import Durations, Exposition

#: upper bounds, seconds: those of Prometheus where nothing is said
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

compilation = Durations((), BOUNDS)
evaluation = Durations((), BOUNDS)


def expose(out: Exposition) -> None:
    compilation.expose(out, "apiserver_cel_compilation_duration_seconds", "CEL compilation time in seconds.")
    evaluation.expose(out, "apiserver_cel_evaluation_duration_seconds", "CEL evaluation time in seconds.")
