"""Record what a service does, always: one tape per request or task, kept if it failed.

`recorder` is the object that a service has, `service_run` one request or task of it, `held_session`
the session whose tape is held in memory. `folder` names and bounds the tapes; `limits` reads sizes
and ages. `asgi`, `wsgi` and `celery_signals` connect frameworks, `calls` everything else;
`messages` turns requests into what is on the tape. `handler` gives a recorded request to an app
again.
"""
