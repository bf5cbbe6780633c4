"""A conversion from end to end: options and targets, routes and steps, the pipeline, and what is reported of it."""
