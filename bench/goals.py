"""Goals beside figures."""


def verdict(figure, most):
    """The goal, and whether a figure, as it is printed, meets it."""
    return f"at most {most:g}: {'met' if round(figure, 1) <= most else 'missed'}"
