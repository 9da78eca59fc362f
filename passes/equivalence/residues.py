"""Exact arithmetic modulo several primes at once, in float64.

An array has one lane per prime on its first axis, as symmetric residues |x| <= p / 2. Primes are
below 2^20, so a product is below 2^38 and 2^15 of them add up exactly in a float64: matrix products
are BLAS calls, split at that many terms. Nonlinear functions are random functions of all lanes
together that obey the laws of dialects/scalar_laws.py; max and min are random functions of the set
of their operands, a product over a reduction of the multiset.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np

from ...dialects.scalar_laws import OF_A_MULTISET, OF_A_SET, POINTS

Lanes: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

LEAST_PRIME, PAST_PRIME = 3 << 18, 1 << 20
_NEUTRAL = {"max": "-inf", "min": "inf"}


class BadPrimeError(Exception):
    """A prime divides a denominator of the programs: other primes must be drawn."""


@lru_cache(maxsize=1)
def prime_pool() -> tuple[int, ...]:
    """The primes that lanes are drawn from."""
    sieve = np.ones(PAST_PRIME, bool)
    sieve[:2] = False
    for n in range(2, int(PAST_PRIME**0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = False
    return tuple(int(p) for p in np.flatnonzero(sieve) if p >= LEAST_PRIME)


def draw_primes(count: int, seed: int) -> tuple[int, ...]:
    """Distinct primes of the pool, all equally probable."""
    pool = prime_pool()
    chosen = np.random.default_rng((seed, 0x9B1E)).choice(len(pool), count, replace=False)
    return tuple(pool[int(k)] for k in chosen)


@dataclass(frozen=True)
class Residues:
    """Arithmetic in several lanes; `seed` chooses the random values and functions."""

    primes: tuple[int, ...]
    seed: int

    @property
    def lanes(self) -> int:
        return len(self.primes)

    @cached_property
    def _moduli(self) -> Lanes:
        return np.array(self.primes, np.float64)

    @cached_property
    def most_terms(self) -> int:
        """The number of products of residues that add up exactly."""
        return (1 << 53) // (max(self.primes) // 2) ** 2

    def _per_lane(self, rank: int) -> Lanes:
        return self._moduli.reshape(-1, *([1] * rank))

    def reduce(self, x: Lanes) -> Lanes:
        """Reduce integers below 2^53 to symmetric residues."""
        p = self._per_lane(x.ndim - 1)
        multiples = np.multiply(x, 1.0 / p)
        np.rint(multiples, out=multiples)
        multiples *= p
        return np.subtract(x, multiples, out=multiples)

    def literal(self, value: Fraction) -> Lanes:
        """A rational in every lane. Raises BadPrimeError if a prime divides its denominator."""
        found: list[float] = []
        for p in self.primes:
            if value.denominator % p == 0:
                raise BadPrimeError(p)
            residue = value.numerator * pow(value.denominator, -1, p) % p
            found.append(float(residue - p if residue > p // 2 else residue))
        return np.array(found)

    def draw(self, name: str, shape: Sequence[int]) -> Lanes:
        """Uniform values for a name."""
        word = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
        rng = np.random.default_rng((self.seed, word))
        lanes = [rng.integers(0, p, size=shape).astype(np.float64) for p in self.primes]
        return self.reduce(np.stack(lanes))

    def scale(self, x: Lanes, by: Fraction) -> Lanes:
        """Multiply by a rational."""
        if by == 1:
            return x
        return self.reduce(x * self.literal(by).reshape(-1, *([1] * (x.ndim - 1))))

    def matmul(self, a: Lanes, b: Lanes) -> Lanes:
        """a [lane, batch, m, k] times b [lane, batch, k, n]."""
        inner = a.shape[-1]
        if inner == 1:
            return self.reduce(a * b)
        total: Lanes | None = None
        for start in range(0, inner, self.most_terms):
            part = slice(start, start + self.most_terms)
            done = self.reduce(np.matmul(a[..., part], b[..., part, :]))
            total = done if total is None else self.reduce(total + done)
        assert total is not None
        return total

    def equal(self, a: Lanes, b: Lanes) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Where all lanes agree."""
        return ~np.any(self.reduce(a - b) != 0, axis=0)

    # --- random functions ---

    def words(self, name: str, args: Sequence[Lanes]) -> tuple[Words, Words]:
        """Two independent 64-bit hashes of a name and, point by point, of all lanes of all args."""
        shape = np.broadcast_shapes(*(a.shape[1:] for a in args)) if args else ()
        first, second = (np.full(shape, w, np.uint64) for w in self._start(name))
        for arg in args:
            positive = np.mod(arg, self._per_lane(arg.ndim - 1)).astype(np.uint64)
            for lane in positive:
                first = mix(first ^ lane)
                second = mix(second + lane)
        return first, second

    def values(self, first: Words, second: Words) -> Lanes:
        """A field element per lane from two words."""
        lanes: list[Lanes] = []
        for k, p in enumerate(self.primes):
            word = first if k % 2 == 0 else second
            lanes.append((mix(word + np.uint64(k)) % np.uint64(p)).astype(np.float64))
        return self.reduce(np.stack(lanes))

    def symbol(self, name: str) -> Lanes:
        """The residue of a literal that is not rational."""
        return self.draw(f"symbol {name}", ())

    def apply(self, function: str, args: Sequence[Lanes]) -> Lanes:
        """A random function of arrays of one shape that obeys the laws of scalar_laws.py."""
        if function in OF_A_SET:
            return self.combine(function, np.stack(args, axis=1))
        value = self.values(*self.words(function, args))
        for point, result in POINTS.get(function, {}).items():
            there = np.all(args[0] == float(point), axis=0)
            value = np.where(there, float(result), value)
        return value

    def combine(self, kind: str, values: Lanes) -> Lanes:
        """A random function of the set (for prod: multiset) of values along axis 1."""
        first, second = self.words("element", [values])
        counts = np.ones(first.shape, bool)
        if kind not in OF_A_MULTISET:
            order = np.argsort(first, axis=0, kind="stable")
            first = np.take_along_axis(first, order, axis=0)
            second = np.take_along_axis(second, order, axis=0)
            values = np.take_along_axis(values, order[None], axis=1)
            counts[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        if kind in _NEUTRAL:
            neutral = self.symbol(_NEUTRAL[kind]).reshape(-1, *[1] * (values.ndim - 1))
            counts &= ~np.all(values == neutral, axis=0)
        made = self._combined(kind, first, second, counts)
        number = counts.sum(axis=0)
        position = np.argmax(counts, axis=0)[None, None]
        single = np.take_along_axis(values, position, axis=1)[:, 0]
        return np.where(number <= 1, single, made)

    def _combined(
        self, kind: str, first: Words, second: Words, counts: np.ndarray[Any, np.dtype[np.bool_]]
    ) -> Lanes:
        with np.errstate(over="ignore"):
            one = np.where(counts, mix(first), np.uint64(0)).sum(axis=0, dtype=np.uint64)
            two = np.where(counts, mix(second), np.uint64(0)).sum(axis=0, dtype=np.uint64)
        a, b = self.words(kind, [])
        return self.values(mix(one ^ a), mix(two ^ b))

    def _start(self, name: str) -> tuple[int, int]:
        key = hashlib.blake2b(f"{self.seed}:{name}".encode(), digest_size=16).digest()
        return int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")


def mix(x: Words) -> Words:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014), a bijection of 64-bit words."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
