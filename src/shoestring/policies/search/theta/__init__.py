"""Early shutdown by predicted final values (SpotTune)."""
