"""What the status of a definition has to be, decided without a server."""

from __future__ import annotations

from typing import Any

from apiserver.apiextensions import naming
from apiserver.machinery.objects import Object

NOW = "2024-01-02T03:04:05Z"
NAMES: Object = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}


def definition(names: Object = NAMES, status: Object | None = None, **spec: Any) -> Object:
    return {"metadata": {"name": "gadgets.demo.test"}, "spec": {"group": "demo.test", "names": names, **spec}, "status": status or {}}


def taken(*accepted: Object) -> naming.Taken:
    names = naming.Taken()
    for number, each in enumerate(accepted):
        names.put(f"n{number}.demo.test", each)
    return names


def settled(found: Object, *accepted: Object) -> Object:
    """The definition with the status that it has to have."""
    status = naming.next_status(found, taken(*accepted), NOW)
    assert status is not None
    return {**found, "status": status}


def said(found: Object) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in found["status"]["conditions"]}


def test_fresh_names_are_accepted_and_the_definition_is_established() -> None:
    done = settled(definition())
    assert done["status"]["acceptedNames"] == NAMES
    assert said(done) == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    assert naming.next_status(done, taken(NAMES), "2030-01-01T00:00:00Z") is None


def test_of_several_conflicts_the_last_is_told_and_free_names_are_taken() -> None:
    other = {"plural": "others", "singular": "gadget", "kind": "Gadget", "listKind": "OtherList", "shortNames": ["gd", "g"]}
    done = settled(definition({**NAMES, "shortNames": ["gd", "g", "x"]}), other)
    assert done["status"]["acceptedNames"] == {"plural": "gadgets", "kind": "", "listKind": "GadgetList"}
    assert said(done)["NamesAccepted"] == ("False", "KindConflict", '"Gadget" is already in use')
    assert said(done)["Established"] == ("False", "NotAccepted", "not all names are accepted")
    short = settled(definition({**NAMES, "shortNames": ["gd", "g", "x"]}), {**other, "singular": "o", "kind": "Other"})
    assert said(short)["NamesAccepted"] == ("False", "ShortNamesConflict", '["gd" is already in use, "g" is already in use]')


def test_an_established_definition_stays_established_whatever_names_it_asks_for_later() -> None:
    done = settled(definition())
    asks = {**done, "spec": {**done["spec"], "names": {**NAMES, "shortNames": ["gd"]}}}
    refused = settled(asks, NAMES, {"plural": "others", "shortNames": ["gd"]})
    assert said(refused)["NamesAccepted"][1] == "ShortNamesConflict"
    assert said(refused)["Established"][0] == "True"
    assert refused["status"]["acceptedNames"] == NAMES
    accepted = settled(refused, NAMES)
    assert accepted["status"]["acceptedNames"] == {**NAMES, "shortNames": ["gd"]}


def test_groups_of_the_project_are_approved_by_a_url() -> None:
    def condition(annotation: str | None) -> tuple[str, str, str]:
        found = definition()
        found["spec"]["group"] = "demo.k8s.io"
        if annotation is not None:
            found["metadata"]["annotations"] = {naming.APPROVAL_ANNOTATION: annotation}
        return said(settled(found))["KubernetesAPIApprovalPolicyConformant"]

    assert condition("https://example.com/1") == ("True", "ApprovedAnnotation", "approved in https://example.com/1")
    assert condition("unapproved, a test") == ("False", "UnapprovedAnnotation", 'not approved: "unapproved, a test"')
    assert condition(None)[1] == "MissingAnnotation"
    assert condition("because")[1] == "InvalidAnnotation"


def test_a_definition_of_old_says_that_its_schema_is_not_structural() -> None:
    version = {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}}
    old = settled(definition(preserveUnknownFields=True, versions=[version]))
    status, reason, message = said(old)["NonStructuralSchema"]
    assert (status, reason) == ("True", "Violations")
    assert message.startswith("[spec.preserveUnknownFields: Invalid value: true: must be false, ")
    assert "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value" in message
    mended = {**old, "spec": {**old["spec"], "preserveUnknownFields": False}}
    assert "NonStructuralSchema" not in said(settled(mended, NAMES))


def test_a_name_is_free_again_when_the_last_that_has_it_is_gone_or_has_another() -> None:
    names = taken(NAMES, {**NAMES, "shortNames": ["g"]})
    names.put("n0.demo.test", {"plural": "others", "kind": "Other"})
    assert "gadgets" in names.resources and "g" in names.resources and "Gadget" in names.kinds
    names.remove("n1.demo.test")
    assert names and set(names.resources) == {"others"} and set(names.kinds) == {"Other"}
    names.remove("n1.demo.test")
    names.remove("n0.demo.test")
    assert not names and not names.resources and not names.kinds
