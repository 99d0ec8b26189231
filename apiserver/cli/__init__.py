"""``sampan``: the command line. Flags carry the names of kube-apiserver, kube-controller-manager and etcd where the same thing
exists there. Exit status: 0 done, 1 something outside is wrong (a busy port, a locked directory), 2 the command line is wrong."""
