"""Where Kubernetes 1.25 and later differ from the recorded 1.20: every rule with the release that has it.

``gone`` finds causes that 1.20 gave and newer servers do not, ``come`` those that only newer ones give; each is searched in
``field reason message``. A rule that was only reworded has both.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Later(NamedTuple):
    since: str
    what: str
    gone: str = ""
    come: str = ""


LATER = (
    Later("1.21", "a nil value is told as JSON", r'Invalid value: "null"', r"Invalid value: null"),
    Later("1.21", "lists and structs are told as JSON", r"Invalid value: (\[\]|&|\w+\.)", r"Invalid value: [\[{]"),
    Later("1.21", "events.k8s.io lets an update change the series alone", come=r"(field is immutable|^series\.)"),
    Later("1.21", "what is finished may be kept for a time", come=r"ttlSecondsAfterFinished"),
    Later("1.21", "numbers of huge pages are whole", come=r"is not positive integer multiple of"),
    Later("1.21", "slices name nodes", come=r"^endpoints\[\d+\]\.nodeName"),
    Later("1.21", "pods are no longer annotated with seccomp profiles", r"^metadata\.annotations "),
    Later("1.21", "fields of a CSIDriver are told one by one", r"^spec .*CSIDriverSpec", r"^spec\.attachedRequired"),
    Later("1.22", "volumes know ReadWriteOncePod", r"accessModes .*supported values: .*ReadWriteMany", r"accessModes .*ReadWriteOncePod"),
    Later("1.22", "a DaemonSet may surge", r"rollingUpdate\.maxUnavailable", r"rollingUpdate\.maxUnavailable"),
    Later(
        "1.22", "a block volume may be ephemeral", r"of PersistentVolumeClaim for block", r"PersistentVolumeClaim or Ephemeral for block"
    ),
    Later("1.22", "families of services are checked without a gate", come=r"^spec\.(ipFamilies|ipFamilyPolicy)"),
    Later("1.22", "addresses that an update leaves out are kept", r"can not be unset|^spec\.(clusterIPs|ports) FieldValueRequired"),
    Later("1.22", "addresses are checked before they are given", r"clusterIPs.*may not change once set", r"^spec\.clusterIPs"),
    Later(
        "1.22",
        "clusterIP and clusterIPs",
        r"element \[.*must match|must be empty when clusterIP is empty",
        r"first value must|must be empty when `",
    ),
    Later(
        "1.22", "loopback addresses have two families", r"loopback range \(127\.0\.0\.0/8\)", r"loopback range \(127\.0\.0\.0/8, ::1/128\)"
    ),
    Later("1.22", "sysctls may have slashes", r"sysctls\[\d+\]\.name", r"sysctls\[\d+\]\.name"),
    Later("1.22", "longer node ids", r"nodeID .* or less", r"nodeID .* or less"),
    Later("1.23", "a claim's data source has a newer name beside it", come=r"spec\.dataSource(Ref)?"),
    Later("1.23", "what dataSource did not know was dropped", r"spec\.dataSource "),
    Later("1.23", "secret names of CSI volumes are subdomains", r"spec\.csi\.name ", r"spec\.csi\.name "),
    Later("1.23", "paths have no space", r"nodePublishSecretRef \.name", r"nodePublishSecretRef\.name"),
    Later("1.23", "paths have no space", r"nodePublishSecretRef \.namespace", r"nodePublishSecretRef\.namespace"),
    Later("1.23", "keys of secrets are told once", r"data\[%s\]\[", r"data\["),
    Later("1.23", "the field has its own name", r"^Value FieldValueForbidden", r"^value FieldValueForbidden"),
    Later("1.24", "the kubelet is configured by files alone", r"node updates may only change", r"node updates (may only|may not) change"),
    Later("1.24", "more than one range of a family is refused", come=r"^spec\.podCIDRs"),
    Later("1.25", "cron counts fields from 1", r"Expected exactly 5 fields", r"expected exactly 5 fields"),
    Later("1.25", "grammar", r"must to greater or equal", r"must be greater than or equal"),
    Later("1.26", "more of a StatefulSet may change", r"^spec .*updates to statefulset spec", r"^spec .*updates to statefulset spec"),
    Later(
        "1.26", "a pod's update names more that may change", r"^spec .*pod updates may not change", r"^spec .*pod updates may not change"
    ),
    Later(
        "1.26", "traffic policies of services", r"^spec\.(externalTrafficPolicy|healthCheck)", r"^spec\.(externalTrafficPolicy|healthCheck)"
    ),
    Later("1.26", "ports of nodes are within the range, in dry runs too", come=r"provided port is not in the valid range"),
    Later("1.27", "values of label selectors are checked", come=r"(matchExpressions\[\d+\]\.values\[\d+\]|Selectors\[\d+\]) "),
    Later("1.27", "selectors of topology spread are checked", come=r"topologySpreadConstraints\[\d+\]\.labelSelector"),
    Later("1.27", "selectors of affinity have their own path", r"\]\.(podAffinityTerm\.)?matchExpressions\.", r"labelSelector\.match"),
    Later("1.28", "search lists may be longer", r"dnsConfig\.searches .*must not have more than"),
    Later("1.28", "ports of the host's network", r"containerPort .*must match `hostPort`", r"hostPort .*must match `containerPort`"),
    Later("1.29", "request and limit are told with the limit", r"must be less than or equal to [\w-]+ limit$", r"limit of "),
    Later(
        "1.30",
        "addresses have one message",
        r"must be (a )?valid IP address|not a valid (CIDR|IP)|must be valid CIDR",
        r"must be a valid (IP|CIDR)",
    ),
    Later("1.30", "aliases of hosts are told by index", r"^spec\.hostAliases\.hostnames", r"hostAliases\[\d+\]\.hostnames\["),
    Later("1.30", "ranges of sources are told one by one", r"must be a list of IP ranges", r"LoadBalancerSourceRanges\[\d+\]"),
    Later("1.31", "webhooks' addresses", r"clientConfig\.(service|url)", r"clientConfig\.(service|url)"),
    Later("1.31", "names of iSCSI targets", r"must be valid format$", r"must be valid format starting with iqn, eui, or naa"),
    Later("1.31", "names of ports have a letter", r"at least one letter or number \(a-z, 0-9\)", r"at least one letter \(a-z\)"),
    Later("1.32", "any printable name is an environment variable's", r"a valid environment variable name"),
    Later("1.32", "a claim may shrink to what it has", r"less than previous value", r"less than status\.capacity"),
    Later("1.33", "procMount is no longer dropped", come=r"securityContext\.procMount"),
    Later(
        "1.33",
        "dots in a label have a message of their own",
        r"a (lowercase RFC 1123|DNS-1123) label must consist",
        r"must not contain dots",
    ),
    Later(
        "1.33",
        "pods may search in names with underscores",
        r"searches\[\d+\] .*subdomain must consist",
        r"searches\[\d+\] .*'_', '-' or '\.'",
    ),
    Later(
        "1.36",
        "names of services may begin with a digit",
        r"^(metadata|spec\..*service)\.name .*a DNS-1035 label must consist",
        r"^(metadata|spec\..*service)\.name .*a lowercase RFC 1123 label must consist",
    ),
    Later("1.34", "environment variables come from files too", r"env\[\d+\]\.valueFrom .*`secretKeyRef`$", r"`fileKeyRef`"),
)


def explains(gone: list[str], come: list[str]) -> bool:
    """Whether each cause of one side alone is that of a rule above."""
    return all(any(rule.gone and re.search(rule.gone, text) for rule in LATER) for text in gone) and all(
        any(rule.come and re.search(rule.come, text) for rule in LATER) for text in come
    )


def explain(recorded: list[list[str]], found: list[list[str]]) -> bool:
    """As ``explains``, of two lists of causes: those that both have, in whatever words of length, count for nothing."""
    gone = [cause for cause in recorded if not any(_same(cause, other) for other in found)]
    come = [cause for cause in found if not any(_same(other, cause) for other in recorded)]
    return bool(gone or come) and explains([" ".join(cause) for cause in gone], [" ".join(cause) for cause in come])


#: 1.20 counts characters and says so in several ways
_LENGTHS = (("may not be more than", "must be no more than"), ("have at most", "be no more than"), (" characters", " bytes"))
_WORDS = (("lower case", "lowercase"), ("a DNS-1123", "a lowercase RFC 1123"), ("a qualified name must", "a valid label key must"))


def _same(recorded: list[str], found: list[str]) -> bool:
    if recorded[:2] != found[:2]:
        return False
    if len(recorded) == 2:
        return True
    said, told = (_plain(cause[2]) for cause in (recorded, found))
    if said == told or not _GO.search(said):
        return said == told
    # a value in Go's own form, which may be all that there is
    detail = re.split(r"[\}\])]: ", said)[-1]
    return detail == said or told.endswith(detail)


_GO = re.compile(r"\{|map\[|0xc0|\(nil\)|\[\]|&")


def _plain(message: str) -> str:
    for old, new in (*_LENGTHS, *_WORDS):
        message = message.replace(old, new)
    return re.sub(r"v1beta1|v2beta2", "v1", message)
