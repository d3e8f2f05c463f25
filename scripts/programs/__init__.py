"""Programs that others wrote, each with its load and its right result; `scripts/field` tries them."""
from . import servers, databases, languages, compilers, media, tools  # noqa: F401: each registers its own
from .trial import PROGRAMS, Fault, Refusal, Trial, command, program  # noqa: F401
