# A PyCapsule around the C function of the type spread_t, see team.pxi.
spread: object

def start_over() -> None: ...
