"""A conversion as a page to look at: one HTML file that needs no network."""

from .document import Outcome, Timing, collect
from .index import Listed, render_index
from .partition_page import render_partition
from .render import render

__all__ = ["Listed", "Outcome", "Timing", "collect", "render", "render_index", "render_partition"]
