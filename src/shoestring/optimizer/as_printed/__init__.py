"""TrimTuner's models and incumbent exactly as its paper prints them."""
