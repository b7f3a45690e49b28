"""Every text that a version of this tool inserted for the recipe: today's, and older ones.

Where an edit's text changes, what it was is added here: a test takes out what each version
inserted.
"""

from __future__ import annotations

from functools import reduce
from itertools import product

from codemods.recipes.slot_mapping.edits import unit_tests, warmup
from codemods.recipes.slot_mapping.facts.names import PARAMETER
from codemods.recipes.warm_up.removal import Past, order_test
from codemods.transforms.known_text import regex

# What 0.1.0 said in place of today's comments.
_COMMENTS_0_1_0 = {
    """\
a live request may own
    the row (elastic EP runs the warm-up again), and has compiled the kernel.""": """\
live requests may own
    it (elastic EP runs the warm-up again), and the kernel has run on them.""",
    """\
a live request
    may own the row (elastic EP runs the warm-up again), and has compiled the kernels.""": """\
live requests
    may own it (elastic EP runs the warm-up again), and the kernels have run on them.""",
    "# Block 1: block 0 is the null block.": "# Block 0 is the null block.",
    "# Leave no slot of block 1 in the slot mapping.": (
        "# Dummy runs may use these slots: leave none of block 1."
    ),
    "    size = min([2, ": """\
    # All calls have the same number of tokens, so that each of them sends the next on
    # to another kernel.
    size = min([2, """,
    """\
        # Which kernel runs depends on the requests, or on the call before. These calls,
        # all of the same number of tokens, launch each kernel that a request can launch.
""": """\
        # A first call, a repeated one and one with several requests launch different
        # kernels.
""",
}
_BOTH = (False, True)
_FORMS = [
    warmup.form(several, clears=clears, marks=marks)
    for several, clears, marks in product(_BOTH, _BOTH, _BOTH)
]
_FORMS_0_1_0 = [
    reduce(lambda text, now: text.replace(now, _COMMENTS_0_1_0[now]), _COMMENTS_0_1_0, form)
    for form in _FORMS
]
_NUMBERED = [text.replace("unspecialized(", "unspecialized{number}(") for text in unit_tests.TEXTS]

PAST = Past(
    warmup.CALL,
    forms=[*_FORMS, *_FORMS_0_1_0],
    tests=[*_NUMBERED, order_test("slot_mapping", warmup.FUNCTION)],
    parameter=PARAMETER,
    parts={
        "function": warmup.FUNCTION,
        "marked": f"(?:{regex(warmup.UNMARKED_ROWS, rows='size')})?",
        "number": r"(?:_\d+)?",
        "checked": "|".join(
            (
                regex(unit_tests.ONE_KERNEL, kernel=r"\w+"),
                regex(unit_tests.KERNELS, loop=r"for kernel in \([^()]*\):"),
            )
        ),
    },
)
