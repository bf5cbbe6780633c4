"""Graphs of a dialect that is source code, written as Python that a person would have written."""
