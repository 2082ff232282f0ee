"""Checkpoint stores."""
