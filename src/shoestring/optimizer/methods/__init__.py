"""Complete methods: a model, an acquisition function and a filter under one name."""
