"""Random kernels of rows: scopes that share loops and read each other's rows anywhere."""

from __future__ import annotations

import random

POINTS = (1, 2, 3, 5, 8, 16, 17, 21, 33)
ROWS = (2, 3, 5, 7, 12, 16, 20, 37)
TYPES = ("f32", "f32", "f32", "f32", "f16", "f64", "i32", "bf16")


def random_rows(seed: int) -> str:
    """A program of one such kernel, between two that change the layout, as text."""
    return _Rows(random.Random(seed)).program()


class _Rows:
    """Scopes over `a`, `i` and a row's own `j`.

    A third of the kernels are windows of a row where points lie side by side, and a third short
    rows without totals. `rows` and `points` are what was made, by name.
    """

    def __init__(self, rng: random.Random):
        self.rng, self.type = rng, rng.choice(TYPES)
        self.lead = [rng.choice((2, 3)), rng.choice(POINTS)]
        self.size = rng.choice(ROWS)
        self.windows, self.short = rng.choice(((True, False), (False, True), (False, False)))
        self.swapped = self.windows or (not self.short and rng.random() < 0.5)
        self.rows, self.points = [("%x", self.size)], list[str]()

    def program(self) -> str:
        """The whole text."""
        count = 2 if self.windows else self.rng.randint(1, 4)
        scopes = [self.scope(f"%s{k}", k == count - 1) for k in range(count)]
        result = [*self.lead, self.rows[-1][1]]
        shape = [*self.lead, self.size]
        kernels = [
            self.kernel("%c", "%in", ["%t = " + self.copy(shape)], "%t", shape, self.swapped),
            self.kernel("%r", "%c", scopes, f"%s{count - 1}", result, self.swapped),
            self.kernel("%out", "%r", ["%t = " + self.copy(result)], "%t", result, False),
        ]
        text, types = "\n".join(kernels), (self.tensor(shape), self.tensor(result))
        head = f"func.func @main(%in: {types[0]}) -> {types[1]}"
        return f"{head} {{\n{text}\n  func.return %out : {types[1]}\n}}\n"

    def tensor(self, shape: list[int], swapped: bool = False) -> str:
        """A type; `swapped`: points lie side by side."""
        layout = ", #kernel.layout<[0, 2, 1]>" if swapped else ""
        return f"tensor<{'x'.join(map(str, shape))}x{self.type}{layout}>"

    def copy(self, shape: list[int]) -> str:
        """A scope that copies %x."""
        a, i, j = shape
        return f"algebra.scope (a: {a}, i: {i}, j: {j}) %x[a, i, j] : {self.tensor(shape)}"

    def kernel(
        self, name: str, read: str, scopes: list[str], made: str, shape: list[int], swapped: bool
    ) -> str:
        """A kernel of scopes."""
        body = "\n".join(f"    {scope}" for scope in scopes)
        end = f"kernel.yield {made} : {self.tensor(shape)}"
        type_ = self.tensor(shape, swapped)
        return f"  {name} = kernel.loops (%x = {read}) {{\n{body}\n    {end}\n  }} : {type_}"

    def scope(self, name: str, last: bool) -> str:
        """One scope; the last one makes a row."""
        a, i = self.lead
        kind = self.rng.choice(
            ("row", "sums") if last or self.windows else ("row", "sums", "total")
        )
        reduction = self.rng.choice(("sum", "sum", "max", "min"))
        if kind == "total":
            read, size = self.rng.choice(self.rows[-2:])
            self.points.append(name)
            body = f"{reduction} (k: {size}) {read}[a, i, k] : {self.tensor(self.lead)}"
            return f"{name} = algebra.scope (a: {a}, i: {i}) {body}"
        size = self.rng.choice((self.size, self.size, 2 * self.size, self.size + 3))
        sums = ""
        if kind == "sums" or (last and self.windows):
            taps = self.rng.choice((2, 3, 3, 5) if self.short else (2, 3, 3, 5, 11))
            sums = f"{reduction} (k: {taps}) "
        body = self.read(sums) if not last or not self.windows else self.window()
        if self.points and self.rng.random() < 0.7:
            body += f" + {self.rng.choice(self.points)}[a, i]"
        self.rows.append((name, size))
        type_ = self.tensor([a, i, size])
        return f"{name} = algebra.scope (a: {a}, i: {i}, j: {size}) {sums}{body} : {type_}"

    def read(self, sums: str) -> str:
        """A read of one of the rows before, at any place."""
        row, size = self.rng.choice(self.rows[-2:])
        places = (
            "j",
            "j",
            "2 * j",
            "j floordiv 2",
            "(j + 1) floordiv 3",
            f"{size - 1} - j",
            "3 * j",
        )
        place = self.rng.choice(places)
        place += f" + k - {self.rng.randint(0, 3)}" if sums else f" - {self.rng.randint(0, 3)}"
        outside = self.rng.choice(("", "", " else 1.0", " else -2.0"))
        return f"{row}[a, i, {place}]{outside}"

    def window(self) -> str:
        """A read of the row before in windows that move with every so many places."""
        times, by = self.rng.choice(((1, 2), (1, 3), (2, 3), (1, 1), (2, 1), (3, 2)))
        place = f"({times} * j + {self.rng.randint(0, by)}) floordiv {by}"
        return f"{self.rows[-1][0]}[a, i, {place} + k - {self.rng.randint(0, 3)}]"
