"""What a trial cost, and whether it satisfies the constraints."""
