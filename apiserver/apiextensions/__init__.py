"""Custom resources: what a CustomResourceDefinition says, made true (apiextensions-apiserver).

Two halves. ``structural`` knows one version's schema: types for server-side apply, decoding, pruning, defaulting, validation, OpenAPI, and
the check of a definition itself. The others serve: ``definitions`` reads a definition into resources, ``registrar`` follows the stored
definitions, gives the server's tables what is served and keeps ``status`` true, ``strategy`` has the rules of custom objects, ``cleanup``
removes the objects of a definition that goes.

    stored definition ─ registrar ─┬─ status: names, Established, …            (``naming``, written with a compare, by any server)
                                    ├─ ResourceTable.replace_custom, SchemaSet   → discovery, OpenAPI, handlers, admission, RBAC
                                    └─ Registry: Store + CustomResourceStrategy  → storage, loaded at the first request

Promised: a resource is served as soon as its definition is Established in the cache of the server that is asked; watches of a shape that is
gone end. A definition that nobody uses costs the definition and its ResourceInfo: no watch cache, no compiled schema.
"""
