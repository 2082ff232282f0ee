"""The options of recipes, read strictly."""
