"""Print the native code that runs a program's rows, and that pool threads run.

A run works as follows. The caller walks the table. A row with flags is a loop
(control_ir.py), whose body is walked in the same way. For a row worth sharing it publishes the row
as a few chunks for each thread and increments the generation. Caller and workers claim chunks until
none is left, and the caller waits for chunks claimed by others. It never waits for a worker that
the system does not schedule. A worker spins on the generation for a while, then yields its core,
then sleeps until the caller wakes it: an idle pool costs no time, and one with more threads than
cores still makes progress.

On Linux a sleeper excludes its caller's core, and is woken before the first row: the system tends
to queue it behind whoever wakes it, where it may wait for milliseconds beside an idle core.
"""

import platform
import sys

from .control_ir import control

# Byte offsets into the state a pool shares; each group has cache lines of its own.
GENERATION = 0
SLEEPERS = 128
DONE = 256
FUNCTION, ARGUMENTS, ITEMS, STOP = 384, 392, 400, 408
WORKERS, CHUNKS, CALLER = 416, 424, 432
TICKET = 512
STATE_BYTES = 640

CHUNKS_PER_THREAD = 4

SPINS = 4_000  # rounds before a worker sleeps: about a millisecond
_POLITE = 1_000  # the first rounds, in which it does not yield
_WAIT, _WAKE = 128, 129  # FUTEX_WAIT and FUTEX_WAKE, private to the process
_SYSCALL_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}


def runtime() -> str:
    """Print the module: `worker(state)`, `run(rows, count, state)`, `stop(state)`."""
    return "\n".join(
        (
            *(_pause(), _yield(), _sleeping(), _LINGER, _CLAIM, _WORKER, _WAKING, _ROW),
            *(control(), _WALK, _RUN, _STOP),
        )
    )


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
    """Sleep on the generation if the system can, else check it again every 100 us."""
    number = _SYSCALL_FUTEX.get(platform.machine().lower())
    if sys.platform == "linux" and number is not None and sys.byteorder == "little":
        return _FUTEX.format(number=number, wait=_WAIT, wake=_WAKE) + _ASIDE
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

define internal void @doze(ptr %word, i64 %seen) {{
  %low = trunc i64 %seen to i32
  call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i32 {wait}, i32 %low, ptr null)
  ret void
}}

define internal void @wake(ptr %word) {{
  call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i32 {wake}, i32 2147483647)
  ret void
}}
"""

# Sleep with the caller's core left out of this thread's own; the set is as before afterwards. Where
# that leaves none, or there are more than 1024, the system refuses and nothing has changed.
_ASIDE = f"""
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)

define internal void @note_core(ptr %state) {{
  %core = call i32 @sched_getcpu()
  %wide = sext i32 %core to i64
  %pc = getelementptr i8, ptr %state, i64 {CALLER}
  store atomic i64 %wide, ptr %pc monotonic, align 8
  ret void
}}

define internal void @sleep(ptr %state, i64 %seen) {{
entry:
  %all = alloca [16 x i64]
  %others = alloca [16 x i64]
  %pc = getelementptr i8, ptr %state, i64 {CALLER}
  %core = load atomic i64, ptr %pc monotonic, align 8
  %got = call i32 @sched_getaffinity(i32 0, i64 128, ptr %all)
  %known = icmp eq i32 %got, 0
  %inside = icmp ult i64 %core, 1024
  %able = and i1 %known, %inside
  br i1 %able, label %aside, label %stay
aside:
  call void @llvm.memcpy.p0.p0.i64(ptr %others, ptr %all, i64 128, i1 false)
  %word = lshr i64 %core, 6
  %at = getelementptr i64, ptr %others, i64 %word
  %bit = and i64 %core, 63
  %one = shl i64 1, %bit
  %but = xor i64 %one, -1
  %old = load i64, ptr %at
  %new = and i64 %old, %but
  store i64 %new, ptr %at
  call i32 @sched_setaffinity(i32 0, i64 128, ptr %others)
  call void @doze(ptr %state, i64 %seen)
  call i32 @sched_setaffinity(i32 0, i64 128, ptr %all)
  ret void
stay:
  call void @doze(ptr %state, i64 %seen)
  ret void
}}
"""

_NAP = """{declare}

define internal void @note_core(ptr %state) {{
  ret void
}}

define internal void @sleep(ptr %word, i64 %seen) {{
  {call}
  ret void
}}

define internal void @wake(ptr %word) {{
  ret void
}}
"""

# A ticket is the row's generation (32 bits) and how many of its chunks are left. Who lowers it has
# the chunk, and the row cannot end before that chunk is done: only then are its fields read. A
# ticket of an older row is not there any more, so the exchange fails.
_CLAIM = f"""define internal void @claim(ptr %state) {{
entry:
  %ticket = getelementptr i8, ptr %state, i64 {TICKET}
  %done = getelementptr i8, ptr %state, i64 {DONE}
  %pf = getelementptr i8, ptr %state, i64 {FUNCTION}
  %pa = getelementptr i8, ptr %state, i64 {ARGUMENTS}
  %pi = getelementptr i8, ptr %state, i64 {ITEMS}
  %pc = getelementptr i8, ptr %state, i64 {CHUNKS}
  br label %look
look:
  %t = load atomic i64, ptr %ticket acquire, align 8
  %left = and i64 %t, 4294967295
  %none = icmp eq i64 %left, 0
  br i1 %none, label %out, label %take
take:
  %less = sub i64 %t, 1
  %pair = cmpxchg ptr %ticket, i64 %t, i64 %less acq_rel acquire, align 8
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %work, label %look
work:
  %f = load ptr, ptr %pf
  %args = load ptr, ptr %pa
  %items = load i64, ptr %pi
  %chunks = load i64, ptr %pc
  %chunk = sub i64 %left, 1
  %a = mul i64 %items, %chunk
  %lo = udiv i64 %a, %chunks
  %b = mul i64 %items, %left
  %hi = udiv i64 %b, %chunks
  call void %f(ptr %args, i64 %lo, i64 %hi)
  %d = atomicrmw add ptr %done, i64 1 release
  br label %look
out:
  ret void
}}
"""

# The sleeper raises SLEEPERS and looks at the generation again; the caller raises the generation
# and then looks at SLEEPERS. Both are sequentially consistent, so one of the two sees the other.
_WORKER = f"""define void @worker(ptr %state) {{
entry:
  %sleepers = getelementptr i8, ptr %state, i64 {SLEEPERS}
  %ps = getelementptr i8, ptr %state, i64 {STOP}
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
  call void @claim(ptr %state)
  br label %idle
out:
  ret void
}}
"""

_WAKING = f"""define internal void @rouse(ptr %state) {{
entry:
  %sleepers = getelementptr i8, ptr %state, i64 {SLEEPERS}
  %s = load atomic i64, ptr %sleepers seq_cst, align 8
  %asleep = icmp ne i64 %s, 0
  br i1 %asleep, label %call, label %out
call:
  call void @wake(ptr %state)
  br label %out
out:
  ret void
}}

define internal void @announce(ptr %state) {{
  %g = atomicrmw add ptr %state, i64 1 seq_cst
  call void @rouse(ptr %state)
  ret void
}}
"""

_ROW = f"""declare i64 @llvm.umin.i64(i64, i64)

define internal void @row(ptr %f, ptr %args, i64 %items, ptr %state) {{
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
  %pc = getelementptr i8, ptr %state, i64 {CHUNKS}
  %ticket = getelementptr i8, ptr %state, i64 {TICKET}
  %most = mul i64 %threads, {CHUNKS_PER_THREAD}
  %chunks = call i64 @llvm.umin.i64(i64 %most, i64 %items)
  store i64 %items, ptr %pi
  store i64 %chunks, ptr %pc
  store atomic i64 0, ptr %done monotonic, align 8
  %g = load atomic i64, ptr %state monotonic, align 8
  %high = shl i64 %g, 32
  %t = or i64 %high, %chunks
  store atomic i64 %t, ptr %ticket release, align 8
  call void @announce(ptr %state)
  call void @claim(ptr %state)
  br label %wait
wait:
  %k = phi i64 [ 0, %fork ], [ %k1, %again ]
  %d = load atomic i64, ptr %done acquire, align 8
  %all = icmp eq i64 %d, %chunks
  br i1 %all, label %out, label %again
again:
  %k1 = call i64 @linger(i64 %k)
  br label %wait
out:
  ret void
}}
"""

_WALK = """define internal void @walk(ptr %rows, i64 %count, ptr %state) {
entry:
  %any = icmp ne i64 %count, 0
  br i1 %any, label %each, label %out
each:
  %i = phi i64 [ 0, %entry ], [ %next, %after ]
  %at = shl i64 %i, 5
  %row = getelementptr i8, ptr %rows, i64 %at
  %pa = getelementptr i8, ptr %row, i64 8
  %pi = getelementptr i8, ptr %row, i64 16
  %pf = getelementptr i8, ptr %row, i64 24
  %f = load ptr, ptr %row
  %a = load ptr, ptr %pa
  %n = load i64, ptr %pi
  %flags = load i64, ptr %pf
  %plain = icmp eq i64 %flags, 0
  br i1 %plain, label %kernel, label %body
kernel:
  call void @row(ptr %f, ptr %a, i64 %n, ptr %state)
  br label %after
body:
  call void @loop(ptr %a, ptr %state)
  br label %after
after:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %out
out:
  ret void
}
"""

_RUN = """define void @run(ptr %rows, i64 %count, ptr %state) {
entry:
  %any = icmp ne i64 %count, 0
  br i1 %any, label %begin, label %out
begin:
  call void @note_core(ptr %state)
  call void @rouse(ptr %state)
  call void @walk(ptr %rows, i64 %count, ptr %state)
  br label %out
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
