"""What one call of `run` works with: the state, the tools, and where things go."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from labkit.cancel import Stop
from labkit.conditions import Exit, RunLimits, StopCondition, cancelled, unpriced
from labkit.dedupe import MODES, Memory
from labkit.errors import ConfigError
from labkit.pricing import Price
from labkit.state import RunState
from labkit.toolerrors import POLICIES
from labkit.tools import Tool, catalogue


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
        self._conditions = [*self.limits.conditions(), *self.stop_conditions]
        if self.limits.max_budget_usd is not None:
            self._conditions.insert(0, unpriced(self.prices))

    def check(self) -> None:
        """Raise Exit where something says stop: a person, a cap, or a condition."""
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

    def tell(self, type: str, **fields: Any) -> None:
        """One line of the trace."""
        if self.trace:
            self.trace.write(self.state.run_id, type, **fields)

    def close(self, exit: Exit) -> None:
        """Write down how the run left the loop."""
        state, about = self.state, exit.interruption or {}
        state.status, state.interruption = exit.status, exit.interruption
        state.error = exit.error
        detail = about.get("reason") or about.get("name") or exit.error
        self.tell(
            "run_stopped",
            status=exit.status,
            reason=about.get("type"),
            turns=state.turns,
            tool_runs=state.tool_runs,
            cost_usd=dollars(state.cost),
            **({"detail": detail} if detail else {}),
        )
        self.save()  # after it was told: a kill between the two tells it twice

    @property
    def budget_left_usd(self) -> Decimal | None:
        """What a subagent may still spend; None: there is no cap."""
        most = self.limits.max_budget_usd
        return None if most is None else most - self.state.cost


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
