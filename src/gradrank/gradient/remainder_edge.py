"""The largest singular value of the remainder E from the population: a deterministic equivalent with its outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradrank.foundation.random import stream
from gradrank.gradient.edge_curve import Curve, Point
from gradrank.gradient.population import ResiduePopulation
from gradrank.linalg.silverstein_equation import Reals

LARGEST_SAMPLE = 1024  # samples that stand for the n of the data
SMOOTH_FEATURES, PRODUCTS, SQUARES = 4, 400, 30
COARSE, FINE, STEPS = 0.8, 14, 90  # ratio of successive w, points around the minimum, most coarse ones
ITERATIONS, TOLERANCE = 400, 1e-8


@dataclass(frozen=True, eq=False)
class Edges:
    """‖E‖ of several draws: mean and standard deviation over data and neurons at fixed F and β; NaN where not solved."""

    value: Reals  # (P,)
    deviation: Reals  # (P,)


def remainder_edges(population: ResiduePopulation, draws: np.ndarray) -> Edges:
    """Return ‖E‖ for the draws of the population with these numbers.

    Given x, a neuron's centred derivative is (S⁽¹⁾(κζz) − μ) + S⁽²⁾ w_⊥ᵀx_B + ½ S⁽³⁾((w_⊥ᵀx_B)² − s²) + …, so that the
    columns of E/γ, independent over neurons, have the second moment

        C = J²/d + X_Bᵀ diag(r²ψ) X_B/n² + Σ_l u_l u_lᵀ,   J = X_Bᵀ diag(r φ) X_B/n,   u_l = X_Bᵀ(r ∘ f_l)/n,

    φ the leading eigenfunction of E_κ S⁽²⁾S⁽²⁾, f_l those of E_κ (S⁽¹⁾ − μ)(S⁽¹⁾ − μ) and the products x_k x_l of
    the second chaos that stand out, ψ the variance that is left. (w − C)⁻¹ is the corner of the inverse of
    diag(w, 1) ⊗ I − Σ_i M_i ⊗ x_i x_iᵀ, M = [[r²ψ/n², −rφ/(n√d)], [·, 0]], whose deterministic equivalent is a fixed point
    for the 2 × 2 matrix g = Σ_k λ_k (diag(w, 1) − λ_k N)⁻¹, N = Σ_i M_i(1 − gM_i)⁻¹. The edge of EEᵀ is the minimum over w
    of γ²x(w), x(w) = w (m + tr C(w − C)⁻¹) (Silverstein and Choi 1995), less 1.21 of its Tracy-Widom scale (½x″w⁴)^(1/3); a
    root of det(1 − u_lᵀ(w − C)⁻¹u_l′) = 0 beyond it is an outlier (Benaych-Georges and Nadakuditi 2011). So is the
    first eigenvalue of Σ̂. Neglected: the dependence of φ on κ beyond its leading eigenfunction,
    correlations of r² with the bulk beyond the second moment, and O(1/n).
    """
    equation = _Equation(population, draws)
    return equation.solve()


class _Equation:
    """The fixed point for g of several draws at once, in units of √E r²."""

    def __init__(self, population: ResiduePopulation, draws: np.ndarray) -> None:
        self.population = population
        neurons, n, d = population.neurons, population.n, population.d
        self.size = min(n, LARGEST_SAMPLE)
        # Other samples for every draw, as other data would be: ‖E‖ depends on the largest |r| among the n.
        rng = stream(0, "remainder_edge")
        self.samples = np.stack([rng.permutation(len(population.z))[: self.size] for _ in draws])
        r = population.r[draws[:, None], self.samples]
        self.unit = np.sqrt((r**2).mean(axis=1))
        self.unit = np.where(self.unit > 0, self.unit, 1.0)
        self.r = r / self.unit[:, None]
        self.count = n / self.size  # data samples that one of these stands for
        self.lam = population.bulk.eigenvalues
        root = np.sqrt(neurons.share)[:, None]
        second = self._chosen(root * neurons.second)
        self.phi = _leading(second, self.r, 1)[:, 0]  # (P, N)
        third = (neurons.share @ neurons.third**2)[self.samples]
        self.products = _second_chaos(self.lam, n)
        left = (neurons.share @ (neurons.slope_square - neurons.slope**2))[self.samples]
        psi = np.maximum(left - neurons.deviation**2 * self.phi**2, 0.0)
        apart = np.minimum(self.products.sum() * third, psi / 2)
        psi -= apart
        self.a = self.r**2 * psi / n**2
        self.b = -self.r * self.phi / (n * math.sqrt(d))
        centred = self._chosen(root * (neurons.slope - neurons.mean_slope[:, None]))
        self.c = _leading(centred, self.r, SMOOTH_FEATURES) * self.r[:, None] / n  # (P, L, N)
        self.third = self.r**2 * third / n**2
        by_f, by_target = population.stein
        self.slope = (_compressed(root * neurons.slope) * by_f).T[self.samples]  # (P, N, components)
        self.target_weights = by_target[self.samples]  # (P, N, K)
        by_network, by_targets = (part[draws] / self.unit**2 for part in population.component_variance)
        v = (by_network + by_targets)[:, None]
        # E r²x_k² = λ_k(E r² + 2 λ_k v²), and x_k² goes with ‖x‖⁴ in the second chaos; its column has the mean S⁽³⁾ Σ̂w wᵀΣ̂v.
        self.row = 1.0 + 2.0 * self.lam * v
        self.row_chaos = self.row * (1.0 + 4.0 * self.lam / self.lam.sum())
        # The first eigenvalue is treated as a spike of its own, whose direction the products set apart feed as well.
        kept = np.maximum(self.a.sum(axis=1), 1e-300)
        self.row_chaos[:, 0] *= 1.0 + (self.r**2 * apart).sum(axis=1) / n**2 / kept
        mean_third = neurons.share @ neurons.third.mean(axis=1) ** 2
        self.lift = mean_third * v * ((self.lam**2).sum() + 2 * self.lam**2) / d**2 * self.lam**2

    def _chosen(self, values: Reals) -> Reals:
        """Return components of functions (J, N) at the samples of every draw, (P, components, size)."""
        return np.moveaxis(_compressed(values)[:, self.samples], 0, 1)

    def solve(self) -> Edges:
        """Walk w down from above all poles of every draw, then look closer around the minimum of x(w)."""
        value, deviation = np.full(len(self.r), np.nan), np.full(len(self.r), np.nan)
        silent = (self.a.max(axis=1) == 0) & (np.abs(self.b).max(axis=1) == 0) & (np.abs(self.c).max(axis=(1, 2)) == 0)
        value[silent] = deviation[silent] = 0.0
        w = self._start()
        points, g = self._walk(w)
        for _ in range(4):
            above = (points[0].spikes < 1).all(axis=1) & points[0].ok
            if bool(above.all()) or silent.all():
                break
            w = np.where(above, w, 8 * w)
            points, g = self._walk(w)
        points += self._closer(points, g)
        for i in np.flatnonzero(~silent):
            curve = Curve.of(points, int(i), self.population.m)
            if curve is not None:
                value[i], deviation[i] = curve.largest()
        scale = self.population.gamma * self.unit
        root = np.sqrt(value)
        # An outlier's length fluctuates with the mean of (r f)² over n samples.
        weight = np.einsum("pln->pn", self.c**2)
        fourth = (weight**2).mean(axis=1) / np.maximum(weight.mean(axis=1), 1e-300) ** 2
        data = np.sqrt(np.maximum(fourth - 1, 0) / self.population.n) / 2
        with np.errstate(invalid="ignore", divide="ignore"):
            inner = np.where(root > 0, deviation / (2 * root), 0.0)
        return Edges(scale * root, scale * np.hypot(inner, root * data))

    def _start(self) -> Reals:
        """Return a w above the bulk and, mostly, above the poles, (P,)."""
        t, n = self.lam.sum(), self.population.n
        linear = (self.b**2).sum(axis=1) * t**2 / n * 8 + 2 * (self.b.sum(axis=1) * self.count * self.lam[0]) ** 2
        bulk = 4 * self.a.sum(axis=1) * t / n + linear
        return np.asarray(20 * (bulk + 4 * t * self.count * (self.c**2).sum(axis=(1, 2))) + 1e-300)

    def _walk(self, w: Reals) -> tuple[list[Point], list[Reals]]:
        """Return points at w, 0.8 w, … until every draw is past the end of the solution or far beyond a pole."""
        g = np.stack([self.lam[1:].sum() / w, np.zeros_like(w), np.full_like(w, self.lam[1:].sum())], axis=1)
        points: list[Point] = []
        states: list[Reals] = []
        active = np.ones(len(w), dtype=bool)
        for _ in range(STEPS):
            point, g = self._at(w, g, active)
            points.append(point)
            states.append(g)
            active = active & point.ok
            if len(points) > 1:
                x = [p.w * (self.population.m + p.trace) for p in points[-2:]]
                with np.errstate(invalid="ignore", divide="ignore"):
                    steep = np.log(x[1] / x[0]) / math.log(COARSE) > 0.9
                active = active & ~((point.spikes.max(axis=1) > 2) & steep)
            if not active.any():
                break
            w = COARSE * w
        return points, states

    def _closer(self, points: list[Point], states: list[Reals]) -> list[Point]:
        """Return points between the smallest x(w) found, or the first pole, and the end of the solution."""
        ok = np.array([p.ok for p in points])
        x = np.array([np.where(p.ok, p.w * (self.population.m + p.trace), np.inf) for p in points])
        pole = np.array([np.where(p.ok, p.spikes.max(axis=1) > 1, False) for p in points])
        first_pole = np.where(pole.any(axis=0), pole.argmax(axis=0), len(points))
        begin = np.maximum(np.minimum(x.argmin(axis=0), first_pole) - 1, 0)
        end = np.maximum(ok.sum(axis=0), begin + 2)
        draws = np.arange(len(self.r))
        w = np.array([p.w for p in points])[begin, draws]
        g = np.array(states)[begin, draws]
        ratio = COARSE ** ((end - begin) / (FINE + 1))
        active = np.asarray(ok.any(axis=0))
        found = []
        for _ in range(FINE):
            w = w * ratio
            point, g = self._at(w, g, active)
            active = active & point.ok
            found.append(point)
        return found

    def _at(self, w: Reals, g: Reals, active: np.ndarray) -> tuple[Point, Reals]:
        """Solve the fixed point by iteration from g; ``ok`` is False where it leaves the domain or does not settle."""
        lam, row, row_chaos, lift = self.lam[1:], self.row[:, 1:], self.row_chaos[:, 1:], self.lift[:, 1:]
        ok, done = active.copy(), ~active
        for _ in range(ITERATIONS):
            live = np.flatnonzero(ok & ~done)
            if not live.size:
                break
            p, q, t = (g[live, k : k + 1] for k in range(3))
            Na, Nb, N12, smallest = self._sums(live, p, q, t)
            first = w[live, None] - lam * (Na * row_chaos[live] + t * Nb * row[live]) - lift[live]
            second = 1.0 - lam * p * Nb * row[live]
            off = lam * N12
            determinant = first * second - off**2
            inside = (smallest > 0) & (determinant.min(axis=1) > 0) & (second.min(axis=1) > 0)
            with np.errstate(all="ignore"):
                new = np.stack([(part / determinant) @ lam for part in (second, off, first)], axis=1)
                scale = np.stack([new[:, 0], np.sqrt(np.abs(new[:, 0] * new[:, 2])), new[:, 2]], axis=1)
                error = (np.abs(new - g[live]) / scale).max(axis=1)
            ok[live[~inside]] = False
            g = g.copy()
            g[live[inside]] = new[inside]
            done[live[inside & (error < TOLERANCE)]] = True
        ok &= done
        return self._point(w, g, ok), g

    def _sums(self, live: np.ndarray, p: Reals, q: Reals, t: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """Return Σ a/Δ, Σ b²/Δ, Σ (b − qb²)/Δ, each (P, 1), and the smallest Δ = det(1 − gM) (P,)."""
        a, b = self.a[live], self.b[live]
        inverse = 1.0 - p * a - 2 * q * b + (q * q - p * t) * b * b
        smallest = inverse.min(axis=1)
        with np.errstate(divide="ignore"):
            inverse = self.count / inverse
        Na, Nb = ((part * inverse).sum(axis=1, keepdims=True) for part in (a, b * b))
        return Na, Nb, (b * inverse).sum(axis=1, keepdims=True) - q * Nb, smallest

    def _point(self, w: Reals, g: Reals, ok: np.ndarray) -> Point:
        """Return the trace of the bulk and the values of all possible spikes at a solution."""
        L = self.c.shape[1]
        trace, joint = np.full(len(w), np.nan), np.full(len(w), np.nan)
        spikes = np.full((len(w), L + 1 + len(self.products)), np.nan)
        live = np.flatnonzero(ok)
        if live.size:
            p, q, t = (g[live, k : k + 1] for k in range(3))
            Na, Nb, N12, _ = self._sums(live, p, q, t)
            lam = self.lam
            row, row_chaos = self.row[live], self.row_chaos[live]
            first = w[live, None] - lam * (Na * row_chaos + t * Nb * row) - self.lift[live]
            second, off = 1.0 - lam * p * Nb * row, lam * N12
            determinant = first * second - off**2
            blocks = [second / determinant, off / determinant, first / determinant]
            trace[live] = w[live] * blocks[0][:, 1:].sum(axis=1) - (len(lam) - 1)
            a, b = self.a[live], self.b[live]
            inverse = 1.0 / (1.0 - p * a - 2 * q * b + (q * q - p * t) * b * b)
            gram, first_gram = self._smooth_gram(live, (p, q), inverse, blocks)
            spikes[live, :L] = np.linalg.eigvalsh(gram)
            joint[live] = np.linalg.det(np.eye(L) - gram - first_gram) * determinant[:, 0] / w[live]
            spikes[live, L] = 1.0 - determinant[:, 0] / w[live]
            h = self.count * (self.third[live] * inverse).sum(axis=1) * p[:, 0]
            spikes[live, L + 1 :] = h[:, None] * self.products
        return Point(w, trace, spikes, joint, ok)

    def _smooth_gram(
        self, live: np.ndarray, g: tuple[Reals, Reals], inverse: Reals, blocks: list[Reals]
    ) -> tuple[Reals, Reals]:
        """Return u_lᵀ(w − C)⁻¹u_l′ (P, L, L) off Σ̂'s first axis and on it, from the noise of the samples and the mean of u_l."""
        p, q = g
        population, c, b = self.population, self.c[live], self.b[live]
        noise = self.count * (c * inverse[:, None]) @ c.transpose(0, 2, 1)
        first = blocks[0][:, 0] * self.lam[0]
        rest, axis = noise * p[:, :, None], noise * first[:, None, None]
        # One sample's leave-one-out factor is (1 − qb, pb)/Δ in the two components of the linearised matrix.
        weights = [population.n * c * (factor * inverse)[:, None] for factor in (1.0 - q * b, p * b)]
        slope, by_targets = self.slope[live], self.target_weights[live]
        means = [(weight @ slope / self.size, weight @ by_targets / self.size) for weight in weights]
        noisy, clean = population.bulk.eigenvalues, population.bulk.clean
        for x, y, block in ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 2)):
            network = means[x][0] @ means[y][0].transpose(0, 2, 1) * (population.gamma**2 * population.m / population.d)
            targets = means[x][1] @ means[y][1].transpose(0, 2, 1) / population.d
            for squares, weight in ((noisy**2, network), (clean**2, targets)):
                terms = blocks[block] * squares
                rest = rest + weight * terms[:, 1:].sum(axis=1)[:, None, None]
                axis = axis + weight * terms[:, :1, None]
        return (rest + rest.transpose(0, 2, 1)) / 2, (axis + axis.transpose(0, 2, 1)) / 2


def _compressed(functions: Reals) -> Reals:
    """Return the few functions, (components, N), that have the same sum of products over κ as those given, (J, N)."""
    values, vectors = np.linalg.eigh(functions @ functions.T)
    return np.asarray(vectors[:, values > 1e-12 * max(float(values[-1]), 1e-300)].T @ functions)


def _leading(functions: Reals, r: Reals, count: int) -> Reals:
    """Return the leading eigenfunctions of E_κ f f under the weight r², times their singular values, (P, count, N)."""
    gram = (functions * (r**2)[:, None]) @ functions.transpose(0, 2, 1)
    _, vectors = np.linalg.eigh(gram)
    count = min(count, functions.shape[1])
    return np.asarray(vectors[:, :, ::-1][:, :, :count].transpose(0, 2, 1) @ functions)


def _second_chaos(lam: Reals, n: int) -> Reals:
    """Return the largest variances of the products x_k x_l in ½((wᵀx)² − wᵀΣ̂w) over random w, with eigenvalues λ of Σ̂.

    E w_k w_l w_k′w_l′ = (δδ + δδ + δδ)/d² gives λ_kλ_l/d² for k < l, and the eigenvalues of (Λ² + ½ λλᵀ)/d² for the squares,
    which are the roots of ½ Σ λ_k²/(x − λ_k²) = 1, one above each λ_k². Those too small to matter are left out.
    """
    d = len(lam)
    smallest = 0.2 * lam.sum() ** 2 / (2 * n)
    top = lam[:PRODUCTS]
    pairs = np.outer(top, top)[np.triu_indices(len(top), 1)]
    squares = lam**2
    lower = squares[:SQUARES]
    upper = np.append(squares[0] + squares.sum() / 2, lower[:-1])
    for _ in range(60):
        middle = (lower + upper) / 2
        with np.errstate(divide="ignore"):
            right = 0.5 * (squares / (middle[:, None] - squares)).sum(axis=1) > 1
        lower, upper = np.where(right, middle, lower), np.where(right, upper, middle)
    roots = (lower + upper) / 2
    pairs = np.sort(pairs[pairs > smallest])[::-1][:PRODUCTS]
    return np.concatenate([roots[roots > smallest], pairs]) / d**2
