"""A conversion as a page to look at: one HTML file that needs no network."""

from .document import Outcome, collect
from .render import render

__all__ = ["Outcome", "collect", "render"]
