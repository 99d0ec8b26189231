#!/bin/sh
# One of three members, each on a machine of its own:
#
#   sampan pki ./pki                         once; then copy the directory to /etc/sampan/pki on each machine (it holds the CAs' keys)
#   M1=10.0.0.1 M2=10.0.0.2 M3=10.0.0.3 ./member.sh m1        on the first machine, m2 and m3 on the others
#
# The first two to run make a quorum and serve; before that each says whom it waits for. A member that is started again finds its data
# and takes no notice of what is said about the first start (--initial-cluster…). One that is to replace a lost one is added first
# (etcdctl member add) and then started with STATE=existing.
set -eu

name=${1:?usage: member.sh m1|m2|m3}
: "${M1:?the address of m1}" "${M2:?the address of m2}" "${M3:?the address of m3}"
case $name in
m1) address=$M1 ;;
m2) address=$M2 ;;
m3) address=$M3 ;;
*)
    echo "member.sh: no member $name" >&2
    exit 2
    ;;
esac
shift

# Between machines a heartbeat should take a fraction of the interval; the defaults of sampan are for one machine, these are etcd's.
exec "${SAMPAN:-sampan}" up --name "$name" \
    --data-dir "${DATA_DIR:-/var/lib/sampan}" --pki-dir "${PKI_DIR:-/etc/sampan/pki}" \
    --initial-cluster "m1=https://$M1:${PEER_PORT:-2380},m2=https://$M2:${PEER_PORT:-2380},m3=https://$M3:${PEER_PORT:-2380}" \
    --initial-cluster-state "${STATE:-new}" --initial-cluster-token "${TOKEN:-sampan}" \
    --listen-peer-urls "https://$address:${PEER_PORT:-2380}" \
    --listen-client-urls "https://$address:${CLIENT_PORT:-2379}" \
    --bind-address "$address" --secure-port "${API_PORT:-6443}" \
    --heartbeat-interval 100 --election-timeout 1000 "$@"
