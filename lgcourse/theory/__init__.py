"""Theory that computes: POLA, the two linear complexities, circuits, SRC, alignment and prediction.

Everything works on the user's own objects too: a function, a matrix, a list of steps.
"""

from lgcourse.registry import lazy

# No submodule may be called like a function here: importing it would put the module in its place.
__getattr__ = lazy(
    "lgcourse.theory",
    {
        "POLA": "pola",
        "CodedPOLA": "pola",
        "OneHot": "pola",
        "ideal_relation_of": "pola",
        "ideal_code_of": "pola",
        "lrc": "linear",
        "lrc_curve": "linear",
        "src": "merging",
        "src_curve": "merging",
        "src_bounds": "merging",
        "induced_src": "merging",
        "induced_src_curve": "merging",
        "predict": "prediction",
        "Prediction": "prediction",
        "sequence_map": "blackbox",
        "as_target": "adapters",
        "discover": "discovery",
        "Discovery": "discovery",
    },
)
