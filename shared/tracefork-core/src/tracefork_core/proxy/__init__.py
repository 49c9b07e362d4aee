"""Record and replay programs of any language, through a proxy on 127.0.0.1.

The proxy is a seam: it turns each HTTP request of a program into a `Request`, and the session
decides what happens to it. `routes` maps paths of the proxy to upstream servers, and names the
variables that point SDKs at the proxy. `door` refuses requests of other origins. `app` answers one
request, `upstream` sends it, `websockets` passes messages both ways, `server` runs both in a
thread. `program` runs the user's command. `network` takes its network away, with the help of
`isolated`, which runs beside the command.
"""
