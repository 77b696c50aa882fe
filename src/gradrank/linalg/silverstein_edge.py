"""Where the largest eigenvalue of a sample covariance matrix fluctuates: the Tracy-Widom centre and scale of its law."""

from __future__ import annotations

import math

from gradrank.linalg.silverstein import SilversteinLaw


def largest_eigenvalue_law(law: SilversteinLaw) -> tuple[float, float]:
    """Return (centre, scale) with (λ₁ − centre)/scale → Tracy-Widom (real case), in units of the population.

    In w = −1/m̃ the upper edge is E = ψ(w₀), ψ′(w₀) = 0, and the density near it follows from ψ″: with m columns

        scale  = (w₀⁴ ψ″(w₀)/2)^(1/3) m^(−2/3)
        centre = E + w₀² ψ‴(w₀) / (6 m ψ″(w₀))

    The scale is that of El Karoui 2007 (complex case), Bao, Pan and Zhou 2015, and Lee and Schnelli 2016 (real case), who
    centre at E. The second term of the centre is of order 1/m, below the scale by m^(−1/3) only. It is what the mean
    of the linear statistics of a real sample adds to m m̃ (Bai and Silverstein 2004), −ψ″/(2ψ′²) in w: near the edge
    it is ¼/(E − z), which belongs to the Tracy-Widom law, plus the effect of moving the edge by this amount. For equal
    τ and K eigenvalues E + … = (√K + √m)² − ½ (√K + √m)(1/√K + 1/√m) over m, the centring of
    Ma 2012, (√(K − ½) + √(m − ½))²/m, up to terms of order m^(−2). The rest is of order m^(−2/3) in units of the scale.

    The eigenvalues are those of (1/m) Σ y_j y_jᵀ as in `SilversteinLaw`, whose population must hold no outlier: with one, the
    upper edge belongs to the outlier alone. Entries of y beyond Gaussian need a fourth moment only.
    """
    population = law.population  # in units of its largest eigenvalue
    w = law.spike_threshold / population.scale
    distance = w - population.tau
    second = 2.0 * float((population.a / distance**3).sum())
    third = -6.0 * float((population.a / distance**4).sum())
    shift = w**2 * third / (6.0 * law.columns * second)
    width = (w**4 * second / 2.0) ** (1 / 3) * math.pow(law.columns, -2 / 3)
    return law.upper_edge + population.scale * shift, population.scale * width
