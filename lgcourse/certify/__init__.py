"""Is a trained Transformer exact at every length? Proofs, their checker, and programs from them."""

from lgcourse.registry import lazy

__getattr__ = lazy(
    "lgcourse.certify",
    {
        "certify": "certificate",
        "certify_run": "certificate",
        "Certificate": "certificate",
        "check": "checker",
        "export_run": "program",
        "crystallise": "crystal",
        "until_certified": "until",
    },
)
