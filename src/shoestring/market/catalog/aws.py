"""Machine types of Amazon EC2 in us-east-1: facts and list prices (Linux, on demand, mid 2025).

Prices of one family are proportional to its size, so a family is a price per vCPU and a list of sizes. Families with
other price rules are written out.
"""

from __future__ import annotations

REGION_ZONES = tuple(f"us-east-1{letter}" for letter in "abcdef")

SIZES = {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16, "8xlarge": 32, "12xlarge": 48, "16xlarge": 64}
"""vCPUs by size; larger ones are added per family where they exist."""

FAMILIES: dict[str, tuple[float, float, dict[str, int]]] = {
    # family: (USD per vCPU-hour, GB per vCPU, sizes)
    "m5": (0.048, 4.0, SIZES | {"24xlarge": 96}),
    "m6i": (0.048, 4.0, SIZES | {"24xlarge": 96, "32xlarge": 128}),
    "m6a": (0.0432, 4.0, SIZES | {"24xlarge": 96, "32xlarge": 128, "48xlarge": 192}),
    "m7i": (0.0504, 4.0, SIZES | {"24xlarge": 96, "48xlarge": 192}),
    "m7g": (0.0408, 4.0, SIZES),
    "c5": (0.0425, 2.0, {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16, "9xlarge": 36, "18xlarge": 72}),
    "c6i": (0.0425, 2.0, SIZES | {"24xlarge": 96, "32xlarge": 128}),
    "c6a": (0.03825, 2.0, SIZES | {"24xlarge": 96, "32xlarge": 128, "48xlarge": 192}),
    "c7i": (0.044625, 2.0, SIZES | {"24xlarge": 96, "48xlarge": 192}),
    "c7g": (0.03625, 2.0, SIZES),
    "r4": (0.0665, 7.625, {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16, "8xlarge": 32, "16xlarge": 64}),
    "r5": (0.063, 8.0, SIZES | {"24xlarge": 96}),
    "r6i": (0.063, 8.0, SIZES | {"24xlarge": 96, "32xlarge": 128}),
    "r7i": (0.06615, 8.0, SIZES | {"24xlarge": 96, "48xlarge": 192}),
}

SINGLE: tuple[tuple[str, float, float, int, str, float], ...] = (
    # name, vCPUs, GB of memory, GPUs, GPU name, USD per hour
    ("t3.nano", 2, 0.5, 0, "", 0.0052),
    ("t3.micro", 2, 1, 0, "", 0.0104),
    ("t3.small", 2, 2, 0, "", 0.0208),
    ("t3.medium", 2, 4, 0, "", 0.0416),
    ("t3.large", 2, 8, 0, "", 0.0832),
    ("t3.xlarge", 4, 16, 0, "", 0.1664),
    ("t3.2xlarge", 8, 32, 0, "", 0.3328),
    ("t2.small", 1, 2, 0, "", 0.023),
    ("t2.medium", 2, 4, 0, "", 0.0464),
    ("t2.large", 2, 8, 0, "", 0.0928),
    ("t2.xlarge", 4, 16, 0, "", 0.1856),
    ("t2.2xlarge", 8, 32, 0, "", 0.3712),
    ("g4dn.xlarge", 4, 16, 1, "T4", 0.526),
    ("g4dn.2xlarge", 8, 32, 1, "T4", 0.752),
    ("g4dn.4xlarge", 16, 64, 1, "T4", 1.204),
    ("g4dn.8xlarge", 32, 128, 1, "T4", 2.176),
    ("g4dn.12xlarge", 48, 192, 4, "T4", 3.912),
    ("g4dn.16xlarge", 64, 256, 1, "T4", 4.352),
    ("g5.xlarge", 4, 16, 1, "A10G", 1.006),
    ("g5.2xlarge", 8, 32, 1, "A10G", 1.212),
    ("g5.4xlarge", 16, 64, 1, "A10G", 1.624),
    ("g5.8xlarge", 32, 128, 1, "A10G", 2.448),
    ("g5.12xlarge", 48, 192, 4, "A10G", 5.672),
    ("g5.24xlarge", 96, 384, 4, "A10G", 8.144),
    ("g5.48xlarge", 192, 768, 8, "A10G", 16.288),
    ("g6.xlarge", 4, 16, 1, "L4", 0.8048),
    ("g6.2xlarge", 8, 32, 1, "L4", 0.9776),
    ("g6.4xlarge", 16, 64, 1, "L4", 1.3232),
    ("g6.12xlarge", 48, 192, 4, "L4", 4.6016),
    ("g6e.xlarge", 4, 32, 1, "L40S", 1.861),
    ("g6e.12xlarge", 48, 384, 4, "L40S", 10.49264),
    ("p3.2xlarge", 8, 61, 1, "V100", 3.06),
    ("p3.8xlarge", 32, 244, 4, "V100", 12.24),
    ("p3.16xlarge", 64, 488, 8, "V100", 24.48),
    ("p4d.24xlarge", 96, 1152, 8, "A100", 32.7726),
    ("p5.48xlarge", 192, 2048, 8, "H100", 98.32),
    # Older machines, some no longer sold: kept at their last list price so that old price files can be replayed.
    ("c1.medium", 2, 1.7, 0, "", 0.13),
    ("c1.xlarge", 8, 7, 0, "", 0.52),
    ("c3.xlarge", 4, 7.5, 0, "", 0.21),
    ("cr1.8xlarge", 32, 244, 0, "", 3.5),
    ("d2.xlarge", 4, 30.5, 0, "", 0.69),
    ("d2.2xlarge", 8, 61, 0, "", 1.38),
    ("d2.4xlarge", 16, 122, 0, "", 2.76),
    ("d2.8xlarge", 36, 244, 0, "", 5.52),
    ("g2.2xlarge", 8, 15, 1, "K520", 0.65),
    ("g2.8xlarge", 32, 60, 4, "K520", 2.6),
    ("hi1.4xlarge", 16, 60.5, 0, "", 3.1),
    ("m1.small", 1, 1.7, 0, "", 0.044),
    ("m1.large", 2, 7.5, 0, "", 0.175),
    ("m1.xlarge", 4, 15, 0, "", 0.35),
    ("m2.xlarge", 2, 17.1, 0, "", 0.245),
    ("m3.medium", 1, 3.75, 0, "", 0.067),
    ("m3.large", 2, 7.5, 0, "", 0.133),
    ("m4.large", 2, 8, 0, "", 0.1),
    ("m4.xlarge", 4, 16, 0, "", 0.2),
    ("m4.2xlarge", 8, 32, 0, "", 0.4),
    ("m4.4xlarge", 16, 64, 0, "", 0.8),
    ("m4.10xlarge", 40, 160, 0, "", 2.0),
    ("p2.xlarge", 4, 61, 1, "K80", 0.9),
    ("p2.8xlarge", 32, 488, 8, "K80", 7.2),
    ("r3.large", 2, 15, 0, "", 0.166),
    ("r3.xlarge", 4, 30.5, 0, "", 0.333),
    ("t1.micro", 1, 0.6, 0, "", 0.02),
)
