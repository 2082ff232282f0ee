"""What people see of a run: study, trials, receipt, explanations, page."""
