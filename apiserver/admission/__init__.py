"""What is done to, and demanded of, a write after authorization and before it is stored (apiserver ``admission``).

    request ─ admit: every plugin may change the new object ─ the kind's own rules ─ validate: every plugin may refuse ─ store

``build`` makes the chain of a server, ``chain`` holds the order and the flags, ``plugins`` one file for each. A plugin may run twice for
one request, since a lost compare runs the change again; it reads other objects from the watch caches and never changes what it got there.
"""
