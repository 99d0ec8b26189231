"""The admission plugins, one file each; names and rules are kube-apiserver's. What one needs comes by its constructor."""
