"""What one call of `run` works with: the state, the tools, and where things go."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import takewhile
from typing import Any
from zlib import crc32

from labkit.cancel import Stop
from labkit.conditions import Exit, RunLimits, StopCondition, cancelled, unpriced
from labkit.dedupe import MODES, Memory
from labkit.errors import ConfigError
from labkit.execution import is_async
from labkit.pricing import Price
from labkit.request import as_json
from labkit.runfile import SaveError
from labkit.state import RunState
from labkit.toolerrors import POLICIES
from labkit.tools import Tool, catalogue
from labkit.transcript import Message


@dataclass
class Session:
    """See `labkit.harness.run` for the meaning of the fields."""

    state: RunState
    tools: Sequence[Tool]
    client: Any
    limits: RunLimits
    stop: Stop
    store: Any = None
    trace: Any = None
    dedupe: bool | str = False
    tool_error: str = "words"
    permanent_errors_stop: bool = True
    stop_conditions: Sequence[StopCondition] = ()
    prices: Mapping[str, Price] | None = None
    on_progress: Callable[[str], None] | None = None
    on_text: Callable[[str], None] | None = None
    by_name: dict[str, Tool] = field(init=False)
    catalogue: list[dict] = field(init=False)
    memory: Memory = field(init=False)

    def __post_init__(self):
        one_of("tool_error", self.tool_error, POLICIES)
        one_of("dedupe", self.dedupe, MODES)
        self.catalogue = catalogue(self.tools)
        self.by_name = {tool.name: tool for tool in self.tools}
        self.memory = Memory(self.state, self.dedupe)
        self._task = asyncio.current_task()
        self._cancellations = self._task.cancelling()
        self.fault: BaseException | None = None  # of the caller's code, in a tool
        if any(map(is_async, self.stop_conditions)):
            raise ConfigError(
                "stop_conditions: an async function, which would always be true; give"
                " a plain one, of the state",
                field="stop_conditions",
            )
        self._conditions = [*self.limits.conditions(), *self.stop_conditions]
        if self.limits.max_budget_usd is not None:
            self._conditions.insert(0, unpriced(self.prices))

    @property
    def digest(self) -> str:
        """Of the next request, in whatever process: of what all turns have in common,
        and of what was said since the last one, to which a person may have added. The
        turns between are not read again, or each would cost more than the last."""
        since = [*takewhile(is_no_turn, reversed(self.state.messages))]
        return f"{crc32(as_json(since), self._common):08x}"

    @cached_property
    def _common(self) -> int:
        state = self.state
        said = [*takewhile(is_no_turn, state.messages)]
        about = {"model": state.model, "tools": self.catalogue, "messages": said}
        return crc32(as_json(about))

    def check(self) -> None:
        """Raise Exit where something says stop: a person, a cap, or a condition; and
        what `report` has failed with."""
        if self.fault:
            raise self.fault
        if self.stop.is_set:
            raise cancelled(self.stop.reason)
        for condition in self._conditions:
            verdict = condition(self.state)
            if isinstance(verdict, Exit):
                raise verdict
            if verdict:
                name = getattr(condition, "__name__", type(condition).__name__)
                raise Exit("interrupted", {"type": "stop_condition", "name": name})

    def save(self) -> None:
        """Called before each effect, and at the end."""
        if self.store:
            self.store.save(self.state)

    def rescue(self) -> None:
        """Save on the way out of an error, which no other shall hide."""
        with suppress(SaveError):
            self.save()

    def tell(self, type: str, **fields: Any) -> None:
        """One line of the trace."""
        if self.trace:
            self.trace.write(self.state.run_id, type, **fields)

    def report(self, tool_name: str, call_id: str, label: str) -> None:
        """A tool's progress. What goes wrong here is no fault of the tool: it is
        raised after it."""
        about = {"tool_name": tool_name, "label": label, "call_id": call_id}
        try:
            self.tell("tool_progress", **about)
            if self.on_progress:
                self.on_progress(label)
        except (Exception, SystemExit) as error:
            self.fault = self.fault or error

    @property
    def is_cancelled(self) -> bool:
        """Has somebody cancelled the task since the run began?"""
        return self._task.cancelling() > self._cancellations

    def close(self, exit: Exit) -> None:
        """Write down how the run left the loop."""
        state, about = self.state, exit.interruption or {}
        detail = about.get("reason") or about.get("name") or exit.error
        try:
            self.tell(
                "run_stopped",
                status=exit.status,
                reason=about.get("type"),
                turns=state.turns,
                tool_runs=state.tool_runs,
                cost_usd=dollars(state.cost),
                **({"detail": detail} if detail else {}),
            )
        except BaseException:  # it is still running, and is told at the next end
            self.rescue()
            raise
        state.status, state.interruption = exit.status, exit.interruption
        state.error = exit.error
        self.save()  # after it was told: a kill between the two tells it twice

    @property
    def budget_left_usd(self) -> Decimal | None:
        """What a subagent may still spend; None: there is no cap."""
        most = self.limits.max_budget_usd
        return None if most is None else most - self.state.cost


def is_no_turn(message: Message) -> bool:
    """Was it said by anybody but the model?"""
    return message["role"] != "assistant"


def one_of(name: str, value: Any, allowed: Sequence) -> None:
    """ConfigError unless `value` is one of `allowed`."""
    if value not in allowed:
        raise ConfigError(f"{name} is {value!r}: use one of {allowed}", field=name)


def dollars(amount: Decimal) -> float:
    """A sum for the trace: a JSON number with six decimals at most."""
    return float(round(amount, 6))


def now_s() -> float:
    """The running loop's clock, for durations."""
    return asyncio.get_running_loop().time()
