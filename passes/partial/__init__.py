"""Partially equivalent programs and their corrections (PET).

Equivalence modulo a region. Let P and M be programs of the same inputs whose results have the same
shape. M is *equivalent to P modulo a set B of positions* if, for all inputs, M[x] = P[x] at every
position x outside of B; nothing is said of M inside. The least such B is the mask, and M is
interesting where the mask is small: M then has a *correction*, the program that takes M outside of
B and P restricted to B inside, which is equal to P everywhere.

Three consequences, which the files here follow:

- The mask is computed at every position (`region.py`), not at a few. PET tests m + 1 positions of
  each box between split points. That is unsound for sums of index maps (X[v] + X[7 - v] and
  X[3] + X[4] agree at v = 3 and 4) and for boxes narrower than that.
- M's values inside B may be anything, infinities and NaN included, so a correction never computes
  with them: `correct.py` writes the result as disjoint boxes, each read from M or from P.
- The equivalence engine proves that a corrected program is equal to P. It knows nothing of masks,
  boxes or mutants. A mutant without that proof is dropped.

Source: Wang et al., PET: Optimizing Tensor Programs with Partially Equivalent Transformations and
Automated Corrections, OSDI 2021.
"""
