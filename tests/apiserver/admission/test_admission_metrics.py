"""What /metrics says of admission, of webhooks and of conversions, in kube-apiserver's names and labels."""

from __future__ import annotations

from typing import Any

from tests.apiserver.admission.test_webhooks_in_server import CM, MUTATING, VALIDATING, about, allow, configured, deny, labelled
from tests.apiserver.api import Api
from tests.apiserver.apiextensions.test_conversion_webhook import V1, V2, defined, gadget
from tests.fakes.webhook_server import AUTHORITY
from tests.fakes.webhooks import webhook


async def samples(api: Api, name: str) -> dict[str, float]:
    text = (await api.get("/metrics", headers={"accept": "text/plain"})).body.decode()
    lines = (line.rpartition(" ") for line in text.splitlines() if line.startswith(f"{name}{{"))
    return {series.removeprefix(name): float(value) for series, _, value in lines}


async def test_each_answer_of_a_webhook_is_counted(api: Api) -> None:
    count = "apiserver_admission_webhook_request_total"
    async with configured(api, VALIDATING, allow, "configmaps"):
        await api.created(CM, {"metadata": {"name": "a"}})
    await api.delete(f"{VALIDATING}/c")
    assert await samples(api, count) == {'{code="200",name="w.example.com",operation="CREATE",rejected="false",type="validating"}': 1}
    async with configured(api, MUTATING, labelled, "configmaps"):
        await api.created(CM, {"metadata": {"name": "b"}})
    await api.delete(f"{MUTATING}/c")
    assert '{code="200",name="w.example.com",operation="CREATE",rejected="false",type="admit"}' in await samples(api, count)
    async with configured(api, VALIDATING, deny, "configmaps"):
        assert (await api.post(CM, {"metadata": {"name": "c"}})).status == 403
    await api.delete(f"{VALIDATING}/c")
    refusals = await samples(api, "apiserver_admission_webhook_rejection_count")
    assert refusals == {'{error_type="no_error",name="w.example.com",operation="CREATE",rejection_code="403",type="validating"}': 1}
    duration = await samples(api, "apiserver_admission_webhook_admission_duration_seconds_count")
    assert duration['{name="w.example.com",operation="CREATE",rejected="true",type="validating"}'] == 1


async def test_a_webhook_that_cannot_be_called_is_counted_by_its_failure_policy(api: Api) -> None:
    def nowhere(name: str, policy: str) -> dict[str, Any]:
        config = {"url": "https://127.0.0.1:1/", "caBundle": AUTHORITY.bundle}
        return webhook(name, rules=about("configmaps"), clientConfig=config, failurePolicy=policy)

    await api.created(MUTATING, {"metadata": {"name": "c"}, "webhooks": [nowhere("open.example.com", "Ignore")]})
    await api.created(CM, {"metadata": {"name": "a"}})
    assert await samples(api, "apiserver_admission_webhook_fail_open_count") == {'{name="open.example.com",type="admit"}': 1}
    assert await samples(api, "apiserver_admission_webhook_rejection_count") == {}
    await api.created(VALIDATING, {"metadata": {"name": "c"}, "webhooks": [nowhere("closed.example.com", "Fail")]})
    assert (await api.post(CM, {"metadata": {"name": "b"}})).status == 500
    expected = '{error_type="calling_webhook_error",name="closed.example.com",operation="CREATE",rejection_code="503",type="validating"}'
    assert await samples(api, "apiserver_admission_webhook_rejection_count") == {expected: 1}


async def test_steps_and_plugins_are_measured(api: Api) -> None:
    await api.post("/api/v1/namespaces/none/configmaps", {"metadata": {"name": "a"}})
    steps = await samples(api, "apiserver_admission_step_admission_duration_seconds_count")
    assert steps['{operation="CREATE",rejected="true",type="admit"}'] >= 1
    assert steps['{operation="CREATE",rejected="false",type="validate"}'] >= 1
    plugins = await samples(api, "apiserver_admission_controller_admission_duration_seconds_count")
    assert plugins['{name="NamespaceLifecycle",operation="CREATE",rejected="true",type="admit"}'] >= 1


async def test_conversions_are_counted(api: Api) -> None:
    async with defined(api):
        await api.created(V1, gadget("a", "v1", old="1"))
        await api.get(f"{V2}/a")
    await api.created(V1, gadget("b", "v1", old="1"))
    assert (await api.get(f"{V2}/b")).status == 500
    total = await samples(api, "apiserver_conversion_webhook_request_total")
    assert total == {
        '{failure_type="",result="success"}': 1,
        '{failure_type="conversion_webhook_call_failure",result="failure"}': 1,
    }
    durations = await samples(api, "apiserver_crd_conversion_webhook_duration_seconds_count")
    assert durations['{crd_name="gadgets.demo.test",from_version="v1",succeeded="true",to_version="v2"}'] == 1
