"""Machine types of Amazon and Google, with their list prices."""
