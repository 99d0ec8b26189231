"""kubectl's commands, each with what it has to say. One line, one call:

    create configmap c --from-literal=a=1 | configmap/c created      it succeeds and says something that the pattern is found in
    get pod nothing ! NotFound                                       it fails and says so
    apply -f - < web | deployment.apps/web created                   with a manifest of ``MANIFESTS`` at its standard input
    [1.28] auth whoami | admin                                       on servers of that version and later only
    (1.24) create token robot | ey                                   with a kubectl of that version and later only

Standard output and error are looked at together. The lines of a group run in order in a namespace of the group's own; ``{ns}`` is its
name, ``{tmp}`` an empty directory, ``{node}`` the cluster's one node. Empty lines and ones that begin with ``#`` are passed over.
"""

from __future__ import annotations

MANIFESTS = {
    "web": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: nginx, image: "nginx:1.25"}]}
""",
    "map": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '1'}",
    "map-changed": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '2'}",
    "misspelt": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndada: {a: '1'}",
    "unknown-kind": "apiVersion: v1\nkind: Bogus\nmetadata: {name: m}",
    "unknown-version": "apiVersion: apps/v7\nkind: Deployment\nmetadata: {name: m}",
    "many": """
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {set: p}}
---
apiVersion: v1
kind: Secret
metadata: {name: two, labels: {set: p}}
stringData: {p: q}
""",
    "role": """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reconciled, namespace: cluster}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
""",
}

GROUPS: dict[str, str] = {
    "create": r"""
create configmap c --from-literal=a=1 | configmap/c created
create configmap c --from-literal=a=1 ! already exists
create secret generic s --from-literal=p=q | secret/s created
create secret docker-registry r --docker-server=r.example.com --docker-username=u --docker-password=p | secret/r created
create deployment web --image=nginx:1.25 --replicas=0 --port=80 | deployment.apps/web created
create job once --image=busybox -- true | job.batch/once created
(1.21) create cronjob often --image=busybox --schedule=*/5_*_*_*_* -- true | cronjob.batch/often created
(1.21) create job manual --from=cronjob/often | job.batch/manual created
create service clusterip ci --tcp=80:8080 | service/ci created
create service nodeport np --tcp=80:8080 | service/np created
create service loadbalancer lb --tcp=80:8080 | service/lb created
create service externalname en --external-name=example.com | service/en created
create ingress in --class=nginx --rule=example.com/*=ci:80 | ingress.networking.k8s.io/in created
(1.22) create poddisruptionbudget pdb --selector=app=web --min-available=1 | poddisruptionbudget.policy/pdb created
create priorityclass {ns}-high --value=1000 --description=x | priorityclass.scheduling.k8s.io/{ns}-high created
create quota q --hard=configmaps=50,secrets=50 | resourcequota/q created
create serviceaccount robot | serviceaccount/robot created
(1.24) create token robot | ^[\w-]+\.[\w-]+\.[\w-]+\s*$
(1.24) create token nobody ! serviceaccounts "nobody" not found
create role reader --verb=get,list --resource=pods,deployments.apps | role.rbac.authorization.k8s.io/reader created
create rolebinding reads --role=reader --serviceaccount={ns}:robot | rolebinding.rbac.authorization.k8s.io/reads created
create clusterrole {ns}-r --verb=get --resource=nodes --non-resource-url=/metrics | clusterrole.rbac.authorization.k8s.io/{ns}-r created
create clusterrolebinding {ns}-b --clusterrole={ns}-r --user=alice | clusterrolebinding.rbac.authorization.k8s.io/{ns}-b created
create namespace {ns}-more | namespace/{ns}-more created
create -f - < unknown-kind ! no matches for kind "Bogus" in version "v1"
create -f - < unknown-version ! no matches for kind "Deployment" in version "apps/v7"
(1.25) create -f - < misspelt ! strict decoding error: unknown field "dada"
(1.25) create -f - --validate=warn < misspelt | Warning: unknown field "dada"
create -f - --dry-run=server < many | secret/two created \(server dry run\)
create -f - --save-config < many | configmap/one created
run one --image=nginx --labels=a=b --env=A=B --port=80 | pod/one created
run shown --image=nginx --dry-run=server -o yaml | serviceAccountName: default
expose pod one --name=exposed | service/exposed exposed
expose deployment web --port=80 --target-port=8080 | service/web exposed
autoscale deployment web --min=1 --max=3 --cpu-percent=50 | horizontalpodautoscaler.autoscaling/web autoscaled
delete namespace {ns}-more --wait=false | namespace "{ns}-more" deleted
delete clusterrole/{ns}-r clusterrolebinding/{ns}-b priorityclass/{ns}-high | "{ns}-high" deleted
""",
    "get": r"""
create -f - < many | secret/two created
get all | service/kubernetes|No resources found
get configmaps,secrets -l set=p -o name | configmap/one\s+secret/two
get -f - -o name < many | configmap/one\s+secret/two
get configmap one --show-labels | set=p
get configmaps -L set | SET
get configmaps --sort-by=.metadata.name --no-headers | one
get configmap one -o json | "kind": "ConfigMap"
(1.21) get configmap one -o yaml --show-managed-fields | manager: kubectl
get configmap one -o jsonpath={.metadata.labels.set} | ^p$
get configmap one -o go-template={{.metadata.name}} | ^one$
get configmap one -o custom-columns=N:.metadata.name,L:.metadata.labels.set | one\s+p
get configmaps --field-selector=metadata.name=one -o name | ^configmap/one\s*$
get configmaps --field-selector=spec.bogus=x ! "spec.bogus" is not a known field selector: only "metadata.name", "metadata.namespace"
get configmaps -A --chunk-size=1 | kube-root-ca.crt
get configmap nothing ! configmaps "nothing" not found
get configmap nothing --ignore-not-found | ^$
get bogus ! the server doesn't have a resource type "bogus"
get --raw /healthz | ok
get --raw /nope ! the server could not find the requested resource
get nodes -o wide | KERNEL-VERSION
get deployments.v1.apps | No resources found
get cs | etcd-0
get events | LAST SEEN|No resources found
describe configmap one | Name:\s+one
describe secret two | p:\s+1 bytes
describe configmap nothing ! not found
describe node {node} | Allocatable:
describe namespace {ns} | Status:\s+Active
describe serviceaccount default | Name:\s+default
delete -f - < many | secret "two" deleted
""",
    "change": r"""
apply -f - < map | configmap/m created
apply -f - < map | configmap/m unchanged
diff -f - < map | ^$
diff -f - < map-changed ! \+  a: "2"
diff --server-side -f - < map-changed ! \+  a: "2"
apply -f - < map-changed | configmap/m configured
apply view-last-applied configmap/m | a: "2"
apply set-last-applied -f - < map | configmap/m configured
apply edit-last-applied configmap/m | configmap/m edited|Edit cancelled
apply -f - --server-side < map ! conflict with "kubectl-client-side-apply"
apply -f - --server-side --force-conflicts < map | configmap/m serverside-applied
apply -f - --dry-run=server < map | configmap/m
edit configmap m | configmap/m edited|Edit cancelled
patch configmap m -p {"data":{"b":"2"}} | configmap/m patched
patch configmap m -p {"data":{"b":"2"}} | configmap/m patched \(no change\)
patch configmap m --type=json -p [{"op":"remove","path":"/data/b"}] | configmap/m patched
patch configmap m --type=merge -p {"data":{"b":null}} | configmap/m patched
(1.21) patch configmap m --type=json -p [{"op":"remove","path":"/data/nope"}] ! the server rejected our request due to an error
patch configmap nothing -p {} ! NotFound
replace -f - < map-changed | configmap/m replaced
replace --force -f - < map | configmap/m replaced
label configmap m tier=a | configmap/m labeled
label configmap m tier=b ! already has a value
label configmap m tier=b --overwrite | configmap/m labeled
(1.23) label configmap m tier- | configmap/m unlabeled
label configmap m bad/key/x=1 ! name part must consist of alphanumeric|a valid label key|qualified name
annotate configmap m note=x | configmap/m annotated
annotate configmap m note- | configmap/m annotated
label configmaps --all x=y | configmap/m labeled
(1.23) wait --for=jsonpath={.data.a}=1 configmap/m --timeout=20s | condition met
delete configmap m --dry-run=server | \(server dry run\)
delete configmap m | configmap "m" deleted
(1.24) wait --for=delete configmap/m --timeout=20s | ^$|condition met
delete configmap m ! NotFound
delete configmap m --ignore-not-found | No resources found|^$
delete configmaps -l none=such | No resources found
delete secrets --all | No resources found|deleted
""",
    "workloads": r"""
apply -f - < web | deployment.apps/web created
rollout status deployment/web --timeout=90s | successfully rolled out
wait --for=condition=Available deployment/web --timeout=90s | condition met
get pods -l app=web -o wide | {node}
get deployment,replicaset -o wide | app=web
scale deployment/web --replicas=1 | deployment.apps/web scaled
scale deployment/web --replicas=3 --current-replicas=7 ! [Ee]xpected replicas to be 7, was 1
(1.24) get deployment web --subresource=scale | DESIRED
set image deployment/web nginx=nginx:1.26 | image updated
set env deployment/web A=b | env updated
set env deployment/web --list | A=b
set resources deployment/web --limits=cpu=200m | resource requirements updated
set serviceaccount deployment/web default | serviceaccount updated
rollout pause deployment/web | paused
rollout resume deployment/web | resumed
rollout status deployment/web --timeout=90s | successfully rolled out
rollout history deployment/web | REVISION
rollout history deployment/web --revision=1 | nginx:1.25
rollout restart deployment/web | restarted
rollout undo deployment/web --to-revision=1 | rolled back
rollout status deployment/web --timeout=90s | successfully rolled out
rollout status configmap/kube-root-ca.crt ! no status viewer|not supported|no kind
expose deployment web --port=80 | service/web exposed
set selector service/web app=web,x=y | selector updated
describe deployment web | Replicas:
describe service web | Endpoints:
(1.26) events --for deployment/web | ScalingReplicaSet
(1.26) events --types=Normal | TYPE
diff -f - < web ! replicas
run one --image=nginx | pod/one created
wait --for=condition=Ready pod/one --timeout=90s | condition met
describe pod one | Node:\s+{node}
logs one ! has no logs: the nodes of this cluster are hollow
logs deployment/web ! has no logs|no containers
logs nothing ! pods "nothing" not found
exec one -- ls ! cannot run a command: the nodes of this cluster are hollow
attach one ! cannot be attached to: the nodes of this cluster are hollow
cp one:/x {tmp}/x ! hollow
port-forward pod/one 0:80 ! cannot be connected to|hollow
(1.27) debug one --image=busybox --container=dbg --profile=general | ^$|ephemeral|debug
(1.27) get pod one -o jsonpath={.spec.ephemeralContainers[0].name} | ^dbg$
top pods ! Metrics API not available
top nodes ! Metrics API not available
label pods --all seen=yes | pod/one labeled
delete pod one --grace-period=0 --force | force deleted
delete deployment web --cascade=foreground --timeout=90s | deleted
""",
    "cluster": r"""
(1.28) version | Server Version: v{version}
api-versions | apps/v1
api-resources | deployments\s+deploy\s+apps/v1\s+true\s+Deployment
api-resources --namespaced=false --verbs=list -o name | nodes
(1.23) api-resources --api-group=batch -o wide | CATEGORIES
cluster-info | control plane.* is running at
cluster-info dump --namespaces {ns} --output-directory={tmp}/dump | Cluster info dumped
explain pods | KIND:\s+Pod
explain pod.spec.containers.resources.limits | Limits describes the maximum amount
explain deployment --recursive | rollingUpdate
explain hpa.spec --api-version=autoscaling/v1 | targetCPUUtilizationPercentage
explain pods.bogus ! field "bogus" does not exist
explain bogus ! the server doesn't have a resource type "bogus"
auth can-i create pods | yes
auth can-i create pods --as=nobody ! no
auth can-i get /healthz --as=nobody --as-group=system:authenticated | yes
auth can-i --list | \*\.\*
auth reconcile -f - < role | role.rbac.authorization.k8s.io/reconciled reconciled
[1.28] (1.28) auth whoami | kubernetes-admin|tester
cordon {node} | cordoned
get node {node} | SchedulingDisabled
drain {node} --ignore-daemonsets --force --delete-emptydir-data --timeout=60s --pod-selector=none=such | drained
uncordon {node} | uncordoned
taint node {node} a=b:NoSchedule | tainted
taint node {node} a=b:NoSchedule ! already has
taint node {node} a- | untainted
config view --minify | current-context
config current-context | .
config get-contexts | CURRENT
kustomize {kustomization} | kind: ConfigMap
apply -k {kustomization} | configmap/made-\w+ created
plugin list ! unable to find any kubectl plugins
completion bash | bash completion
options | --kubeconfig
get pods --as=nobody ! pods is forbidden: User "nobody" cannot list resource "pods"
get pods --token=wrong --kubeconfig=/dev/null --server={url} --insecure-skip-tls-verify ! Unauthorized
get pods --request-timeout=abc ! Invalid timeout value
""",
}
