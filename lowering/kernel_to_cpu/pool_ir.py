"""Print the native code that runs a program's rows and that pool threads live in.

One run is: the caller walks the table; for a row worth sharing it publishes the row, raises the
generation, does its own share, and waits until every worker has reported. A worker spins on the
generation for a while, then offers its core to others, then sleeps until the caller wakes it: an
idle pool costs no time, and one with more threads than cores still moves.
"""

import platform
import sys

# Byte offsets into the state a pool shares; each group has cache lines of its own.
GENERATION = 0
SLEEPERS = 128
DONE = 256
FUNCTION, ARGUMENTS, ITEMS, STOP = 384, 392, 400, 408
WORKERS = 416
STATE_BYTES = 512

SPINS = 4_000  # rounds before a worker sleeps: about a millisecond
_POLITE = 1_000  # of which this many first ones keep the core
_WAIT, _WAKE = 128, 129  # FUTEX_WAIT and FUTEX_WAKE, private to the process
_SYSCALL_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}


def runtime() -> str:
    """Print the module: `worker(state, number)`, `run(rows, count, state)`, `stop(state)`."""
    return "\n".join((_pause(), _yield(), _sleeping(), _LINGER, _SHARE, _WORKER, _ROW, _RUN, _STOP))


def _pause() -> str:
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        return _PAUSE.format(hint="call void @llvm.x86.sse2.pause()") + (
            "declare void @llvm.x86.sse2.pause()\n"
        )
    hint = 'call void asm sideeffect "isb", ""()' if machine in ("aarch64", "arm64") else ""
    return _PAUSE.format(hint=hint)


def _yield() -> str:
    return _YIELD.format(name="SwitchToThread" if sys.platform == "win32" else "sched_yield")


def _sleeping() -> str:
    """Sleep on the generation itself where the system can, else look again every 100 us."""
    number = _SYSCALL_FUTEX.get(platform.machine().lower())
    if sys.platform == "linux" and number is not None and sys.byteorder == "little":
        return _FUTEX.format(number=number, wait=_WAIT, wake=_WAKE)
    if sys.platform == "win32":
        return _NAP.format(declare="declare void @Sleep(i32)", call="call void @Sleep(i32 1)")
    return _NAP.format(declare="declare i32 @usleep(i32)", call="call i32 @usleep(i32 100)")


_PAUSE = """define internal void @pause() alwaysinline {{
  {hint}
  ret void
}}
"""

_YIELD = """declare i32 @{name}()

define internal void @yield() {{
  %r = call i32 @{name}()
  ret void
}}
"""

_LINGER = f"""define internal i64 @linger(i64 %rounds) alwaysinline {{
  call void @pause()
  %next = add i64 %rounds, 1
  %long = icmp ugt i64 %next, {_POLITE}
  br i1 %long, label %offer, label %out
offer:
  call void @yield()
  br label %out
out:
  ret i64 %next
}}
"""

_FUTEX = """declare i64 @syscall(i64, ...)

define internal void @sleep(ptr %word, i64 %seen) {{
  %low = trunc i64 %seen to i32
  call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i32 {wait}, i32 %low, ptr null)
  ret void
}}

define internal void @wake(ptr %word) {{
  call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i32 {wake}, i32 2147483647)
  ret void
}}
"""

_NAP = """{declare}

define internal void @sleep(ptr %word, i64 %seen) {{
  {call}
  ret void
}}

define internal void @wake(ptr %word) {{
  ret void
}}
"""

_SHARE = """define internal void @share(ptr %f, ptr %args, i64 %items, i64 %number, i64 %threads) {
  %a = mul i64 %items, %number
  %lo = udiv i64 %a, %threads
  %b = add i64 %a, %items
  %hi = udiv i64 %b, %threads
  %any = icmp ult i64 %lo, %hi
  br i1 %any, label %work, label %out
work:
  call void %f(ptr %args, i64 %lo, i64 %hi)
  br label %out
out:
  ret void
}
"""

# The sleeper raises SLEEPERS and looks at the generation again; the caller raises the generation
# and then looks at SLEEPERS. Both are sequentially consistent, so one of the two sees the other.
_WORKER = f"""define void @worker(ptr %state, i64 %number) {{
entry:
  %sleepers = getelementptr i8, ptr %state, i64 {SLEEPERS}
  %done = getelementptr i8, ptr %state, i64 {DONE}
  %pf = getelementptr i8, ptr %state, i64 {FUNCTION}
  %pa = getelementptr i8, ptr %state, i64 {ARGUMENTS}
  %pi = getelementptr i8, ptr %state, i64 {ITEMS}
  %ps = getelementptr i8, ptr %state, i64 {STOP}
  %pw = getelementptr i8, ptr %state, i64 {WORKERS}
  %workers = load i64, ptr %pw
  %threads = add i64 %workers, 1
  br label %idle
idle:
  %last = phi i64 [ 0, %entry ], [ %seen, %work ]
  br label %spin
spin:
  %k = phi i64 [ 0, %idle ], [ %k1, %wait ], [ 0, %doze ]
  %seen = load atomic i64, ptr %state acquire, align 8
  %new = icmp ne i64 %seen, %last
  br i1 %new, label %woken, label %wait
wait:
  %k1 = call i64 @linger(i64 %k)
  %long = icmp ugt i64 %k1, {SPINS}
  br i1 %long, label %doze, label %spin
doze:
  %s0 = atomicrmw add ptr %sleepers, i64 1 seq_cst
  call void @sleep(ptr %state, i64 %last)
  %s1 = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  br label %spin
woken:
  %stop = load i64, ptr %ps
  %quit = icmp ne i64 %stop, 0
  br i1 %quit, label %out, label %work
work:
  %f = load ptr, ptr %pf
  %a = load ptr, ptr %pa
  %n = load i64, ptr %pi
  call void @share(ptr %f, ptr %a, i64 %n, i64 %number, i64 %threads)
  %d = atomicrmw add ptr %done, i64 1 release
  br label %idle
out:
  ret void
}}

define internal void @announce(ptr %state) {{
entry:
  %sleepers = getelementptr i8, ptr %state, i64 {SLEEPERS}
  %g = atomicrmw add ptr %state, i64 1 seq_cst
  %s = load atomic i64, ptr %sleepers seq_cst, align 8
  %asleep = icmp ne i64 %s, 0
  br i1 %asleep, label %rouse, label %out
rouse:
  call void @wake(ptr %state)
  br label %out
out:
  ret void
}}
"""

_ROW = f"""define internal void @row(ptr %f, ptr %args, i64 %items, ptr %state) {{
entry:
  %pw = getelementptr i8, ptr %state, i64 {WORKERS}
  %workers = load i64, ptr %pw
  %threads = add i64 %workers, 1
  %alone = icmp eq i64 %workers, 0
  %small = icmp ule i64 %items, 1
  %inline = or i1 %alone, %small
  br i1 %inline, label %here, label %fork
here:
  call void %f(ptr %args, i64 0, i64 %items)
  ret void
fork:
  %done = getelementptr i8, ptr %state, i64 {DONE}
  %pf = getelementptr i8, ptr %state, i64 {FUNCTION}
  %pa = getelementptr i8, ptr %state, i64 {ARGUMENTS}
  %pi = getelementptr i8, ptr %state, i64 {ITEMS}
  store ptr %f, ptr %pf
  store ptr %args, ptr %pa
  store i64 %items, ptr %pi
  store atomic i64 0, ptr %done monotonic, align 8
  call void @announce(ptr %state)
  call void @share(ptr %f, ptr %args, i64 %items, i64 0, i64 %threads)
  br label %wait
wait:
  %k = phi i64 [ 0, %fork ], [ %k1, %again ]
  %d = load atomic i64, ptr %done acquire, align 8
  %all = icmp eq i64 %d, %workers
  br i1 %all, label %out, label %again
again:
  %k1 = call i64 @linger(i64 %k)
  br label %wait
out:
  ret void
}}
"""

_RUN = """define void @run(ptr %rows, i64 %count, ptr %state) {
entry:
  %any = icmp ne i64 %count, 0
  br i1 %any, label %each, label %out
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %at = shl i64 %i, 5
  %row = getelementptr i8, ptr %rows, i64 %at
  %pa = getelementptr i8, ptr %row, i64 8
  %pi = getelementptr i8, ptr %row, i64 16
  %f = load ptr, ptr %row
  %a = load ptr, ptr %pa
  %n = load i64, ptr %pi
  call void @row(ptr %f, ptr %a, i64 %n, ptr %state)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %out
out:
  ret void
}
"""

_STOP = f"""define void @stop(ptr %state) {{
  %ps = getelementptr i8, ptr %state, i64 {STOP}
  store i64 1, ptr %ps
  call void @announce(ptr %state)
  ret void
}}
"""
