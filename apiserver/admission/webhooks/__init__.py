"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook (apiserver ``admission/plugin/webhook``).

``plugins`` holds the two plugins, which cost a look at an empty dict while nothing is configured. ``hooks`` makes of the stored
configurations, of which a watch cache tells at every change, what a request is matched with; ``mutating`` calls those that match one after
the other, ``validating`` all at once, both by ``call``; ``review`` writes and reads AdmissionReviews. Everything but ``plugins`` is loaded
with the first configuration.

``world`` says what they need of the server around them.
"""
