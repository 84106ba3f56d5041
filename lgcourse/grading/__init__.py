"""Which questions does the course ask, and how are answers checked? At once in the notebook.

In an exercise notebook::

    from lgcourse.grading import checks

    ex = checks(1)  # the checks of exercise 1
    ex.check_exact_match(exact_match)  # reports, and never raises
    ex.check_exact_match.hint(1)  # a hint; 2 and 3 say more
    ex.summary()

A question is written in one place, ``bank/eNN.py`` with NN the number of the exercise.
"""

from lgcourse.registry import lazy

__getattr__ = lazy(
    "lgcourse.grading",
    {
        "checks": "notebook",
        "examine": "question",
        "Question": "question",
        "Check": "question",
        "Report": "question",
        "Use": "answers",
        "Made": "sandbox.codec",
        "prompts": "models",
        "true_answers": "models",
        "Wrong": "comparison",
        "compare": "comparison",
        "questions": "bank",
        "exercises": "bank",
        "grade": "batch",
        "Settings": "grader",
    },
)
