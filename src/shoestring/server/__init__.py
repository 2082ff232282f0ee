"""The service: runs submitted, watched and cancelled over HTTP. A thin layer: what it knows is in the runs' folders."""
