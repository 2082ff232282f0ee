"""What `shoestring demo` shows."""
