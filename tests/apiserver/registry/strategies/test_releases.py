"""Rules of built-in kinds that one Kubernetes has and another has not, each on both sides of the release that changed it."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from apiserver.machinery import object_meta_validation, release
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.registry.service_allocators import MemoryServiceAllocators
from apiserver.registry.validation import formats
from tests.apiserver.registry.strategies.kinds import CONTAINER, changed, create_errors, created, of, rules, update_errors

POD: Object = {"containers": [CONTAINER]}


def errors_by(minor: int, kind: str, obj: Object, group: str = "") -> list[str]:
    with release.serving(minor):
        return create_errors(rules(kind, group), copy.deepcopy(obj))


def update_by(minor: int, kind: str, obj: Object, group: str = "", status: Object | None = None, **spec: Any) -> list[str]:
    """The refusals of an update of ``obj``, which is stored, to another spec."""
    with release.serving(minor):
        strategy = rules(kind, group)
        old = created(strategy, obj)
        if status is not None:
            old["status"] = status
        return update_errors(strategy, changed(old, **spec), old)


@pytest.mark.parametrize(("minor", "right"), [(31, False), (32, True)])
def test_names_of_environment_variables(minor: int, right: bool) -> None:
    pod = of({"containers": [{**CONTAINER, "env": [{"name": "Logging:Level"}], "envFrom": [_source("1_")]}]})
    found = errors_by(minor, "Pod", pod)
    assert [error.split(":")[0] for error in found] == (
        [] if right else ["spec.containers[0].env[0].name", "spec.containers[0].envFrom[0].prefix"]
    )


def _source(prefix: str) -> Object:
    return {"prefix": prefix, "configMapRef": {"name": "a"}}


def test_sources_of_environment_variables_are_told() -> None:
    pod = of({"containers": [{**CONTAINER, "env": [{"name": "A", "valueFrom": {}}]}]})
    assert errors_by(33, "Pod", pod)[0].endswith("`resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`")
    assert errors_by(34, "Pod", pod)[0].endswith("`resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")


@pytest.mark.parametrize(("minor", "right"), [(32, []), (33, [".", "_tcp.example.com"])])
def test_search_domains(minor: int, right: list[str]) -> None:
    domains = [".", "_tcp.example.com", "a.example.com."]
    for domain in domains:
        pod = of({**POD, "dnsConfig": {"searches": [domain]}})
        assert bool(errors_by(minor, "Pod", pod)) is not (domain in (*right, domains[-1])), domain


@pytest.mark.parametrize(("minor", "right"), [(26, False), (27, True)])
def test_a_gated_pod_may_be_placed_more_narrowly(minor: int, right: bool) -> None:
    pod = of({**POD, "schedulingGates": [{"name": "example.com/wait"}]})
    found = update_by(minor, "Pod", pod, nodeSelector={"zone": "a"})
    assert not found if right else "pod updates may not change fields" in found[0]


@pytest.mark.parametrize(("minor", "right"), [(28, True), (29, False)])
def test_new_zones_in_schedules(minor: int, right: bool) -> None:
    job = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
    cron_job = of({"schedule": "TZ=UTC 0 1 * * *", "jobTemplate": {"spec": job}}, api_version="batch/v1")
    words = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    assert errors_by(minor, "CronJob", cron_job, "batch") == (
        [] if right else [f'spec.schedule: Invalid value: "TZ=UTC 0 1 * * *": {words}']
    )
    cron_job["spec"]["timeZone"] = "Etc/UTC"
    assert errors_by(minor, "CronJob", cron_job, "batch"), "never both"


@pytest.mark.parametrize(
    ("minor", "size", "said"),
    [
        (31, "3Gi", "field can not be less than previous value"),
        (32, "3Gi", ""),
        (32, "2Gi", "field can not be less than status.capacity"),
    ],
)
def test_a_claim_after_an_expansion_that_failed(minor: int, size: str, said: str) -> None:
    claim = of({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Gi"}}})
    status = {"phase": "Bound", "capacity": {"storage": "2Gi"}}
    found = update_by(minor, "PersistentVolumeClaim", claim, status=status, resources={"requests": {"storage": size}})
    assert found == ([f"spec.resources.requests.storage: Forbidden: {said}"] if said else [])


def _job() -> Object:
    template = {"spec": {**POD, "restartPolicy": "Never"}}
    return of({"suspend": True, "template": template}, api_version="batch/v1")


def _job_update(minor: int, status: Object, **pod: Any) -> bool:
    """Whether the template of a suspended job may change so."""
    with release.serving(minor):
        strategy = rules("Job", "batch")
        old = created(strategy, _job())
        old["status"] = status
        template = copy.deepcopy(old["spec"]["template"])
        template["spec"].update(pod)
        return update_errors(strategy, changed(old, template=template), old) == []


def test_gates_of_suspended_jobs_since_1_27() -> None:
    gates = [{"name": "example.com/wait"}]
    assert not _job_update(26, {}, schedulingGates=gates)
    assert _job_update(27, {}, schedulingGates=gates)


def test_suspended_jobs_that_were_started_since_1_36() -> None:
    started = {"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Suspended", "status": "True"}]}
    assert _job_update(35, {}, nodeSelector={"zone": "a"}), "never started"
    assert not _job_update(35, started, nodeSelector={"zone": "a"})
    assert _job_update(36, started, nodeSelector={"zone": "a"})
    assert not _job_update(36, {**started, "active": 1}, nodeSelector={"zone": "a"}), "its pods still run"
    assert not _job_update(36, {"startTime": started["startTime"]}, nodeSelector={"zone": "a"}), "it is not suspended yet"


def test_resources_of_suspended_jobs_since_1_36() -> None:
    more = [{**CONTAINER, "resources": {"requests": {"cpu": "2"}}}]
    with release.serving(36):
        template = created(rules("Job", "batch"), _job())["spec"]["template"]["spec"]["containers"]
    more = [{**template[0], "resources": {"requests": {"cpu": "2"}}}]
    assert not _job_update(35, {}, containers=more)
    assert _job_update(36, {}, containers=more)
    assert not _job_update(36, {}, containers=[{**more[0], "image": "other:1"}])
    assert not _job_update(36, {}, containers=[*more, {**more[0], "name": "d"}])


@pytest.mark.parametrize(("minor", "right"), [(35, False), (36, True)])
def test_services_whose_names_begin_with_a_digit(minor: int, right: bool) -> None:
    with release.serving(minor):
        rule = rules("Service").name_rule
        found = object_meta_validation.validate({"metadata": {"name": "1st", "namespace": "ns"}}, namespaced=True, name_rule=rule)
        assert (not found) is right
    backend = {"service": {"name": "1st", "port": {"number": 80}}}
    ingress = of({"defaultBackend": backend}, api_version="networking.k8s.io/v1")
    assert (not errors_by(minor, "Ingress", ingress, "networking.k8s.io")) is right


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("010.002.003.004", "must not have leading 0s"),
        ("::ffff:10.2.3.4", "must not be an IPv4-mapped IPv6 address"),
        ("::ffff:10.02.3.4", "must not have leading 0s"),
        ("FE80:0:0::0abc", ""),
        ("10.0.0.0", ""),
    ],
)
def test_addresses_that_are_read_in_several_ways(address: str, said: str) -> None:
    for minor, words in ((35, ""), (36, said)):
        with release.serving(minor):
            assert formats.ip_address(address) == ([words] if words else [])


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("010.0.0.0/8", "must not have leading 0s in IP or prefix length"),
        ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
        ("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address"),
        ("10.0.0.5/8", "must not have bits set beyond the prefix length"),
        ("2001:0db8::/32", ""),
    ],
)
def test_networks_that_are_read_in_several_ways(network: str, said: str) -> None:
    for minor, words in ((35, ""), (36, said)):
        with release.serving(minor):
            assert formats.cidr(network) == ([words] if words else [])


@pytest.mark.parametrize("wrong", ["10.0.0", "1.2.3.4.5", "10.0.0.256", "1.2.3.4%eth0", "", "x", "0x1.2.3.4"])
def test_what_is_no_address_is_none_in_any_release(wrong: str) -> None:
    for minor in (25, 37):
        with release.serving(minor):
            assert formats.ip_address(wrong) == [formats.NO_IP]
            assert formats.cidr(wrong + "/8") == [formats.NO_CIDR]
    assert formats.cidr("10.0.0.0/" + "9" * 10_000) == [formats.NO_CIDR]


def test_an_address_that_was_right_once_stays() -> None:
    pod = of({**POD, "hostAliases": [{"ip": "010.2.3.4", "hostnames": ["a"]}]})
    assert errors_by(35, "Pod", pod) == []
    with release.serving(36):
        found = rules("Pod").validate_update(None, pod, pod)  # type: ignore[arg-type]
        stricter = [error for error in found if error.field == "spec.hostAliases[0].ip"]
        assert [error.detail for error in stricter] == ["must not have leading 0s"]
        assert formats.without_kept(stricter, pod) == []
        assert formats.without_kept(stricter, of(POD)) == stricter


def test_cluster_ips_are_spelled_in_one_way() -> None:
    service = of({"clusterIP": "010.0.0.7", "clusterIPs": ["010.0.0.7"], "ports": [{"port": 80}]})
    allocators = MemoryServiceAllocators("10.0.0.0/24", "30000-32767", random.Random(1))
    with release.serving(30), pytest.raises(StatusError) as refused:
        create_errors(rules("Service"), service, allocators)
    assert str(refused.value).endswith(f'spec.clusterIPs[0]: Invalid value: "010.0.0.7": {formats.NO_IP}')
