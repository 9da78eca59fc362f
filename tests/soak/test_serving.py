"""Serving for long: threads, memory, processes on one cache, forks. `pytest -m soak -s tests/soak`.

Each case is a process of its own; it prints what it counted, and nothing here depends on time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc"),
]

# A network of a few kernels, what it must answer, and the memory of this process.
MODEL = """
import gc, json, os, sys, threading
import numpy as np
import isoform

def network():
    rng = np.random.default_rng(0)
    b = isoform.GraphBuilder()
    def weight(name, *shape):
        return b.weight(name, (rng.standard_normal(shape) / 8).astype(np.float32))
    x = b.input("x", (4, 64))
    y = b.relu(b.matmul(x, weight("w0", 64, 128)))
    b.output("y", b.softmax(b.matmul(y, weight("w1", 128, 16)), axis=1))
    return b.build()

def feeds(seed):
    return {"x": np.random.default_rng(seed).standard_normal((4, 64)).astype(np.float32)}

def resident():
    gc.collect()
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

session = isoform.compile(network(), threads=2)
wanted = [session.run(None, feeds(k))[0].copy() for k in range(16)]
"""


def start(code: str, cache: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "ISOFORM_CACHE": str(cache)}
    command = [sys.executable, "-c", MODEL + code, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    text, _ = process.communicate()
    assert process.returncode == 0
    found = json.loads(text)
    print(found)
    return found


def test_sixteen_threads_and_100_000_runs_leave_the_memory_as_it_was(tmp_path: Path) -> None:
    """After a tenth of the runs nothing grows; each answer has the bits of the first."""
    code = """
RUNS, wrong = int(sys.argv[1]), []

def serve(k):
    mine = feeds(k)
    for _ in range(RUNS // 16):
        if not np.array_equal(session.run(None, mine)[0], wanted[k]):
            wrong.append(k)

def all_threads():
    threads = [threading.Thread(target=serve, args=(k,)) for k in range(16)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return resident()

RUNS, whole = RUNS // 10, RUNS
first = all_threads()
RUNS = whole - RUNS
print(json.dumps({"runs": whole, "wrong": wrong, "first_kib": first, "last_kib": all_threads()}))
"""
    found = answer(start(code, tmp_path, "100000"))
    assert found["wrong"] == []
    assert found["last_kib"] - found["first_kib"] < 1024


def test_sessions_that_come_and_go_leave_nothing(tmp_path: Path) -> None:
    code = """
def once():
    with isoform.compile(network(), threads=2) as other:
        assert np.array_equal(other.run(None, feeds(3))[0], wanted[3])

for _ in range(20): once()
first, threads = resident(), len(os.listdir("/proc/self/task"))
for _ in range(200): once()
grown = len(os.listdir("/proc/self/task")) - threads
print(json.dumps({"sessions": 200, "grown_kib": resident() - first, "grown_threads": grown}))
"""
    found = answer(start(code, tmp_path))
    assert found["grown_threads"] == 0
    assert found["grown_kib"] < 4 * 1024


def test_two_processes_share_a_cache(tmp_path: Path) -> None:
    """Both compile and clear at once, again and again: each answer is right, no file is broken."""
    code = """
from pathlib import Path

right = 0
for k in range(100):
    if k % 10 == int(sys.argv[1]):
        for file in Path(os.environ["ISOFORM_CACHE"]).rglob("*.program"):
            file.unlink(missing_ok=True)
    with isoform.compile(network(), threads=1) as other:
        right += np.array_equal(other.run(None, feeds(k % 16))[0], wanted[k % 16])
print(json.dumps({"compiled": 100, "right": right}))
"""
    processes = [start(code, tmp_path, str(k)) for k in (2, 7)]
    assert [answer(process)["right"] for process in processes] == [100, 100]
    assert list(tmp_path.rglob(".*.*")) == [], "nothing half-written"


def test_children_forked_after_loading_run_at_once(tmp_path: Path) -> None:
    """Eight workers from one loaded session, with runs in the parent's threads meanwhile."""
    code = """
import warnings
warnings.simplefilter("ignore")  # of a fork with threads
stop = threading.Event()

def serve(k):
    while not stop.is_set():
        session.run(None, feeds(k))

threads = [threading.Thread(target=serve, args=(k,)) for k in range(2)]
for thread in threads: thread.start()
children = []
for k in range(8):
    child = os.fork()
    if child == 0:
        same = all(np.array_equal(session.run(None, feeds(k))[0], wanted[k]) for _ in range(500))
        os._exit(0 if same else 1)
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
stop.set()
for thread in threads: thread.join()
same = np.array_equal(session.run(None, feeds(5))[0], wanted[5])
print(json.dumps({"children": codes, "parent": bool(same)}))
"""
    assert answer(start(code, tmp_path)) == {"children": [0] * 8, "parent": True}
