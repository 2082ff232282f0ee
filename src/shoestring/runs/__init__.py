"""From a resolved request to a run: folder, launch, drive, amend, progress, forecast."""
