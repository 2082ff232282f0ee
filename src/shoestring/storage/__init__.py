"""Journals and checkpoint stores."""
