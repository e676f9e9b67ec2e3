"""Products of options: `make test` shows every option once, `make test-all` the other combinations.

``@pytest.mark.once_per("kernel", "dtype")`` above a test asks for one of its cases for each kernel
with each dtype; what else is parametrised takes turns. Where that leaves out an option, the first
case that has it is kept, too. All other cases get the mark `full`. ``once_per(key=function)`` asks
for one case per value of a function of the parameters.
"""


def mark_full(items):
    """Mark the cases that `make test` leaves out."""
    products = {}
    for item in items:
        if item.get_closest_marker("once_per"):
            test = item.nodeid.removesuffix(f"[{item.callspec.id}]")
            products.setdefault(test, []).append(item)
    for cases in products.values():
        mark = cases[0].get_closest_marker("once_per")
        shown = shown_once([case.callspec.params for case in cases], *mark.args, **mark.kwargs)
        for place, case in enumerate(cases):
            if place not in shown:
                case.add_marker("full")


def shown_once(cases, *names, key=None):
    """Places of cases that show the named options together, and every other option."""
    groups = {}
    for place, options in enumerate(cases):
        what = key(**options) if key else [options[name] for name in names]
        groups.setdefault(repr(what), []).append(place)  # options need not be hashable
    shown = {group[turn % len(group)] for turn, group in enumerate(groups.values())}
    pairs = [{(name, repr(value)) for name, value in options.items()} for options in cases]
    seen = {pair for place in shown for pair in pairs[place]}
    for place, own in enumerate(pairs):
        if not own <= seen:
            shown.add(place)
            seen |= own
    return shown
