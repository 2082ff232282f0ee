"""Machine types of Google Compute Engine in us-central1: facts and list prices (on demand, mid 2025).

Within a family price and memory are proportional to vCPUs. us-east1 and us-west1 have the same prices.
"""

from __future__ import annotations

REGION_ZONES = (
    *(f"us-central1-{letter}" for letter in "abcf"),
    *(f"us-east1-{letter}" for letter in "bcd"),
    *(f"us-west1-{letter}" for letter in "abc"),
)

FAMILIES: dict[str, tuple[float, float, tuple[int, ...]]] = {
    # family: (USD per vCPU-hour, GB per vCPU, sizes in vCPUs)
    "n1-standard": (0.0475, 3.75, (1, 2, 4, 8, 16, 32, 64, 96)),
    "n1-highcpu": (0.0354243, 0.9, (2, 4, 8, 16, 32, 64, 96)),
    "n1-highmem": (0.0592, 6.5, (2, 4, 8, 16, 32, 64, 96)),
    "e2-standard": (0.0335057, 4.0, (2, 4, 8, 16, 32)),
    "e2-highcpu": (0.0247345, 1.0, (2, 4, 8, 16, 32)),
    "e2-highmem": (0.0451990, 8.0, (2, 4, 8, 16)),
    "n2-standard": (0.0485590, 4.0, (2, 4, 8, 16, 32, 48, 64, 80)),
    "n2-highcpu": (0.0358485, 1.0, (2, 4, 8, 16, 32, 48, 64, 80)),
    "c2-standard": (0.0521995, 4.0, (4, 8, 16, 30, 60)),
    "c3-highcpu": (0.0430900, 2.0, (4, 8, 22, 44, 88)),
}

SINGLE: tuple[tuple[str, float, float, int, str, float], ...] = (
    # name, vCPUs, GB of memory, GPUs, GPU name, USD per hour
    ("a2-highgpu-1g", 12, 85, 1, "A100", 3.673385),
    ("a2-highgpu-2g", 24, 170, 2, "A100", 7.34677),
    ("a2-highgpu-4g", 48, 340, 4, "A100", 14.69354),
    ("a2-highgpu-8g", 96, 680, 8, "A100", 29.38708),
    ("g2-standard-4", 4, 16, 1, "L4", 0.706832),
    ("g2-standard-8", 8, 32, 1, "L4", 0.853624),
    ("g2-standard-12", 12, 48, 1, "L4", 1.000416),
    ("g2-standard-24", 24, 96, 2, "L4", 2.000832),
)
