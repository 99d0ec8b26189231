"""Values and pure functions that the API server and the controllers share: no socket, file, clock, thread, logger or global
random in here. API objects are plain dicts in their JSON form; they are never changed in place unless a function's name or
docstring says so."""
