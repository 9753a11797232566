"""The agent's commands: a run stopped in one terminal is finished in another."""
