"""A decoder that one can read in one sitting: attention, block, Transformer, greedy generation."""

from lgcourse.registry import lazy

__getattr__ = lazy(
    "lgcourse.model",
    {
        "Transformer": "transformer",
        "Attention": "attention",
        "View": "view",
        "Cache": "cache",
        "attention_weights": "reading",
        "operand_share": "reading",
        "generate": "generation",
        "next_tokens": "generation",
    },
)
