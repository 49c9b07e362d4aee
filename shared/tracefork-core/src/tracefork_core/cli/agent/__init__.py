"""Run the agent that a command line names, and remember which command made which tape.

`agent` is a script, module, function, project or app, run `as_main`; `project` finds what a
framework would run, `callable_agent` makes it a function, `recorded_command` and `command_store`
recall the command of a tape, `kept_arguments` keeps secrets out of that store. `app` lets a service
handle the request on a tape. `hash_seed` restarts Python with a fixed seed, `child_python` runs a
fresh one. `tool_settings` reads which functions are tools. `ending`, `shutdown`,
`finalizers` and `hard_exit` are how an agent ends.
"""
