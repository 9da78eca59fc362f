"""Print the native code that runs the rows of a body in a loop, and describe such a loop.

A loop's argument table holds the address of its plan, of the body's rows, of the body's argument
tables, and then its entries: operands, results and memory of its own. The plan is a constant, so a
stored program needs no addresses in it.

Before iteration i the loop writes addresses into the body's tables. A moving array is one of three
entries, by i, plus bytes that grow with i. Its even and odd entries are so counted that the last
iteration is an even one if the number of iterations is known when the loop begins. Then carried
values end in the results' buffers; what does not is copied at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NOTHING = -1
NO_LIMIT = (1 << 63) - 1

# The plan's words before its patches and finals.
_HEAD = 9
# What a patch has before its array: the position in the body's tables, the shift.
_PATCH = 7


@dataclass(frozen=True)
class LoopPlan:
    """A loop: at most `limit` iterations; entries of its table, or `NOTHING`.

    Attributes:
        count: a number of iterations.
        start, going: whether to begin (if `negated`, not to), and to go on after an iteration.
        step: where the loop writes the iteration's number.
        rows: how many the body has.
        patches: position in the body's tables, shift, and the five numbers of a moving array.
        finals: the five numbers of an array after the last iteration, the result, its bytes.
    """

    limit: int
    rows: int
    patches: Sequence[tuple[int, ...]]
    finals: Sequence[tuple[int, ...]] = ()
    count: int = NOTHING
    start: int = NOTHING
    going: int = NOTHING
    step: int = NOTHING
    negated: bool = False

    def words(self) -> list[int]:
        """The i64 that the native loop reads."""
        head = [self.limit, self.count, self.start, self.going, self.step, int(self.negated)]
        head += [self.rows, len(self.patches), len(self.finals)]
        return [*head, *(n for entry in (*self.patches, *self.finals) for n in entry)]


def control() -> str:
    """Print `@loop(args, state)`, which needs `@walk(rows, count, state)`."""
    return _ADDRESS + _PATCHES + _FINALS + _LOOP


# The address of a moving array in iteration %i; %shape points to its five numbers.
_ADDRESS = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal i64 @word(ptr %plan, i64 %k) alwaysinline {
  %p = getelementptr i64, ptr %plan, i64 %k
  %v = load i64, ptr %p
  ret i64 %v
}

define internal i64 @entry(ptr %args, i64 %k) alwaysinline {
  %at = add i64 %k, 3
  %v = call i64 @word(ptr %args, i64 %at)
  ret i64 %v
}

define internal i64 @moving(ptr %shape, ptr %args, i64 %i, i64 %phase) alwaysinline {
  %first = call i64 @word(ptr %shape, i64 0)
  %even = call i64 @word(ptr %shape, i64 1)
  %odd = call i64 @word(ptr %shape, i64 2)
  %start = call i64 @word(ptr %shape, i64 3)
  %step = call i64 @word(ptr %shape, i64 4)
  %parity = add i64 %i, %phase
  %bit = and i64 %parity, 1
  %is_even = icmp eq i64 %bit, 0
  %later = select i1 %is_even, i64 %even, i64 %odd
  %is_first = icmp eq i64 %i, 0
  %has_first = icmp sge i64 %first, 0
  %begins = and i1 %is_first, %has_first
  %chosen = select i1 %begins, i64 %first, i64 %later
  %base = call i64 @entry(ptr %args, i64 %chosen)
  %far = mul i64 %i, %step
  %moved = add i64 %start, %far
  %address = add i64 %base, %moved
  ret i64 %address
}
"""

_PATCHES = f"""
define internal void @patch(ptr %patches, i64 %n, ptr %args, ptr %block, i64 %i, i64 %phase) {{
entry:
  %any = icmp ne i64 %n, 0
  br i1 %any, label %each, label %out
each:
  %k = phi i64 [ 0, %entry ], [ %next, %each ]
  %at = mul i64 %k, {_PATCH}
  %one = getelementptr i64, ptr %patches, i64 %at
  %position = call i64 @word(ptr %one, i64 0)
  %shift = call i64 @word(ptr %one, i64 1)
  %shape = getelementptr i64, ptr %one, i64 2
  %base = call i64 @moving(ptr %shape, ptr %args, i64 %i, i64 %phase)
  %address = add i64 %base, %shift
  %slot = getelementptr i64, ptr %block, i64 %position
  store i64 %address, ptr %slot
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %each, label %out
out:
  ret void
}}
"""

_FINALS = f"""
define internal void @finish(ptr %finals, i64 %n, ptr %args, i64 %i, i64 %phase) {{
entry:
  %any = icmp ne i64 %n, 0
  br i1 %any, label %each, label %out
each:
  %k = phi i64 [ 0, %entry ], [ %next, %after ]
  %at = mul i64 %k, {_PATCH}
  %shape = getelementptr i64, ptr %finals, i64 %at
  %from = call i64 @moving(ptr %shape, ptr %args, i64 %i, i64 %phase)
  %result = call i64 @word(ptr %shape, i64 5)
  %size = call i64 @word(ptr %shape, i64 6)
  %to = call i64 @entry(ptr %args, i64 %result)
  %there = icmp eq i64 %from, %to
  br i1 %there, label %after, label %copy
copy:
  %source = inttoptr i64 %from to ptr
  %target = inttoptr i64 %to to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %size, i1 false)
  br label %after
after:
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %each, label %out
out:
  ret void
}}
"""

_LOOP = f"""
define internal void @loop(ptr %args, ptr %state) {{
entry:
  %plan = load ptr, ptr %args
  %p1 = getelementptr ptr, ptr %args, i64 1
  %rows = load ptr, ptr %p1
  %p2 = getelementptr ptr, ptr %args, i64 2
  %block = load ptr, ptr %p2
  %limit = call i64 @word(ptr %plan, i64 0)
  %count = call i64 @word(ptr %plan, i64 1)
  %start = call i64 @word(ptr %plan, i64 2)
  %going = call i64 @word(ptr %plan, i64 3)
  %step = call i64 @word(ptr %plan, i64 4)
  %negated = call i64 @word(ptr %plan, i64 5)
  %size = call i64 @word(ptr %plan, i64 6)
  %npatches = call i64 @word(ptr %plan, i64 7)
  %nfinals = call i64 @word(ptr %plan, i64 8)
  %patches = getelementptr i64, ptr %plan, i64 {_HEAD}
  %skip = mul i64 %npatches, {_PATCH}
  %finals = getelementptr i64, ptr %patches, i64 %skip
  %counted = icmp sge i64 %count, 0
  br i1 %counted, label %read_count, label %sized
read_count:
  %count_at = call i64 @entry(ptr %args, i64 %count)
  %count_ptr = inttoptr i64 %count_at to ptr
  %given = load i64, ptr %count_ptr, align 1
  %less = icmp slt i64 %given, %limit
  %most = select i1 %less, i64 %given, i64 %limit
  br label %sized
sized:
  %n = phi i64 [ %limit, %entry ], [ %most, %read_count ]
  %before = sub i64 %n, 1
  %phase = and i64 %before, 1
  %asked = icmp sge i64 %start, 0
  br i1 %asked, label %read_start, label %test
read_start:
  %start_at = call i64 @entry(ptr %args, i64 %start)
  %start_ptr = inttoptr i64 %start_at to ptr
  %first = load i8, ptr %start_ptr
  %is = icmp ne i8 %first, 0
  %no = icmp ne i64 %negated, 0
  %begin = xor i1 %is, %no
  br i1 %begin, label %test, label %end
test:
  %i = phi i64 [ 0, %sized ], [ 0, %read_start ], [ %next, %again ]
  %left = icmp slt i64 %i, %n
  br i1 %left, label %iterate, label %end
iterate:
  %tells = icmp sge i64 %step, 0
  br i1 %tells, label %tell, label %work
tell:
  %step_at = call i64 @entry(ptr %args, i64 %step)
  %step_ptr = inttoptr i64 %step_at to ptr
  store i64 %i, ptr %step_ptr
  br label %work
work:
  call void @patch(ptr %patches, i64 %npatches, ptr %args, ptr %block, i64 %i, i64 %phase)
  call void @walk(ptr %rows, i64 %size, ptr %state)
  %next = add i64 %i, 1
  %decides = icmp sge i64 %going, 0
  br i1 %decides, label %decide, label %again
decide:
  %going_at = call i64 @entry(ptr %args, i64 %going)
  %going_ptr = inttoptr i64 %going_at to ptr
  %goes = load i8, ptr %going_ptr
  %on = icmp ne i8 %goes, 0
  br i1 %on, label %again, label %end
again:
  br label %test
end:
  %done = phi i64 [ 0, %read_start ], [ %i, %test ], [ %next, %decide ]
  call void @finish(ptr %finals, i64 %nfinals, ptr %args, i64 %done, i64 %phase)
  ret void
}}
"""
