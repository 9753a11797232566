"""A chat-completions provider that misbehaves on demand, for 127.0.0.1 only.

    plan        which fault a request asks for
    answers     what the provider says
    generation  an answer being produced, token by token
    wire        how its events look on the wire, odd ones included
    replies     one reply to one client, with all that can go wrong with it
    exchange    one request and its reply, between a provider and a door
    incoming    how a request is read, and what refuses it
    routes      where it goes, and what is said if that is nowhere
    ledger      what the provider keeps: bills, journal, idempotency, windows
    admin       what can be asked of it besides answers
    tokens      counts with the real vocabulary
    provider    the provider itself (chapter 14)
    memory      the door for httpx in the same process
    sockets     the door for everyone else, on loopback

Nothing here knows `labkit`: any client in any language may be put on this bench.
"""
