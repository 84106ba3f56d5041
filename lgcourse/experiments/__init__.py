"""Does theory predict what training shows? Sweeps, their stored results, and the agreement."""

from lgcourse.registry import lazy

__getattr__ = lazy(
    "lgcourse.experiments",
    {
        "Plan": "plan",
        "read_plan": "plan",
        "sweep": "sweeping",
        "Store": "store",
        "run_one": "single",
        "predict_one": "single",
        "result_table": "results",
        "without_time": "results",
        "Cell": "cells",
        "cells_of": "cells",
        "Scores": "agreement",
        "compare": "agreement",
        "balanced_accuracy": "agreement",
        "matthews": "agreement",
    },
)
