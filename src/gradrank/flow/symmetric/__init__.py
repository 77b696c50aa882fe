"""Gradient flow of wide two-layer ReLU networks on symmetric or low-dimensional targets (Hajjar and Chizat 2023).

f(x) = (1/m) Σ a_j relu(⟨b_j, x⟩), loss ½E(f − f*)², velocities times m; |a_j|² − ‖b_j‖² and the sign of a_j are conserved.
"""
