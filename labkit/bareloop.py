"""The whole idea, before any of the parts that make it survive (chapter 23)."""

import json

from labkit.execution import call_tool
from labkit.tools import catalogue
from labkit.transcript import assistant_message, tool_message


async def bare_loop(client, messages, tools):
    """Ask, run what was asked for, ask again. Its one way out: the model stops asking.

    No cap, no budget, no errors as data, nothing on disk. Returns the answer, and
    leaves the transcript in `messages`.
    """
    by_name = {tool.name: tool for tool in tools}
    while True:
        reply = await client.complete(messages, tools=catalogue(tools))
        messages.append(assistant_message(reply))
        if not reply.tool_calls:
            return reply.text
        for call in reply.tool_calls:
            arguments = json.loads(call.arguments)
            result = await call_tool(by_name[call.name], arguments)
            messages.append(tool_message(call, result))
