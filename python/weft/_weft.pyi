# The extension's functions take integers: python/_weft.c.
from typing import Any

def __getattr__(name: str) -> Any: ...
