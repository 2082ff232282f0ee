"""Storms: real runs whose processes are killed, stopped and moved through time, and the laws they must keep."""
