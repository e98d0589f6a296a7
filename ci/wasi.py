"""Runs a program for WASI, in a single thread: `wasi.py PROGRAM ARGUMENTS`. cargo's runner for wasm32-wasip1."""
import sys

import wasmtime

wasi = wasmtime.WasiConfig()
wasi.argv = sys.argv[1:]
wasi.inherit_stdout()
wasi.inherit_stderr()
engine = wasmtime.Engine()
store = wasmtime.Store(engine)
store.set_wasi(wasi)
linker = wasmtime.Linker(engine)
linker.define_wasi()
start = linker.instantiate(store, wasmtime.Module.from_file(engine, sys.argv[1])).exports(store)["_start"]
try:
    start(store)
except wasmtime.ExitTrap as end:
    sys.exit(end.code)
