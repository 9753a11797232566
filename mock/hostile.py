"""The model of chapter 14: it says one sentence, whatever it is asked."""

from mock.answers import Answer, Model, tool_call, words
from mock.plan import Plan

TIDE = "A tide gauge is a device that measures sea level over time ."
ACCENT = "À noite o marégrafo não vê , só mede até à maré da manhã – às três há água ."
ARGUMENTS = '{"station":"Cascais","unit":"m"}'

ANSWERS = {
    "tide": words(TIDE),
    "accent": words(ACCENT),
    "tool": tool_call("read_gauge", ARGUMENTS),
}


def answer(body: dict, plan: Plan) -> Answer:
    """The sentence that the plan names."""
    return ANSWERS[plan.answer]


HOSTILE = Model(("tide-1",), answer)
