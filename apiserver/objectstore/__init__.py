"""Objects over the store: encoding, the watch cache, lists and watches at a resourceVersion, and compare-and-swap writes.

The only room that speaks to ``storage.api``. Keys are ``/registry/<storage prefix>/[<namespace>/]<name>``; a value is the object's
JSON in the order apiVersion, kind, metadata, … **without** ``metadata.resourceVersion``, which is the key's mod revision. What is
served is the value with ``"resourceVersion":"N",`` spliced in right behind ``"metadata":{``: made once per write, kept in the watch
cache, and handed out as it is to GET, LIST and WATCH.

Promises: a default read is never stale; a watch delivers every change after its revision once, in order, or says that it cannot
(410); an acknowledged write is in the store. The caller owes: never change what came decoded out of here.
"""
