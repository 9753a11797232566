"""The bundle: all that a room without a network needs, in one folder."""
