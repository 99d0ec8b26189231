"""Deletes finished Jobs ``ttlSecondsAfterFinished`` after their end (``pkg/controller/ttlafterfinished``).

Promised: the Job is read live before it goes, so that a time to live that was just raised counts.
"""
