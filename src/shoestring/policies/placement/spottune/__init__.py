"""SpotTune's placement: bids, first-hour refunds, rotation."""
