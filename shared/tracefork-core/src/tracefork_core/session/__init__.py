"""Decide what happens to an exchange: record it, answer it from the tape, or report a divergence.

`session` is the state machine; it hands its `run_state` to all other parts. It writes to a
`tape_sink` and reads from a `tape_source`. A request gets a `live_exchange`, a `replayed_exchange`
or a `prepared_exchange`; in a replay or fork, `answers` chooses, and `reading` follows how far each
answer is read.

A fork follows the plan in `forking`, and `side_effects` says which calls it must not make.
`interventions` are what it may change and `intervening` carries them out. `held_state` refuses
requests that continue a conversation which the provider stored differently. `onward` holds a change
for the questions after it. `session_checkpoints` puts the saved states of a framework on the tape
and answers from it, and `travel` continues a recording from another checkpoint. `session_states`
puts on the tape what a run reads from databases, stores and caches of the user's own.
"""
