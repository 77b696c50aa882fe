"""The papers that the figures follow."""

LRG = "Sonthalia, Murray and Montúfar 2025 (arXiv:2510.01303)"
BA = "Ba, Erdogdu, Suzuki, Wang, Wu and Yang 2022 (arXiv:2205.01445)"
MONIRI = "Moniri, Lee, Hassani and Dobriban 2024 (arXiv:2310.07891)"
LNR = "Li, Nica and Roy 2022 (arXiv:2206.02768)"
HAJJAR = "Hajjar and Chizat 2023 (arXiv:2211.08771)"
PAPERS = (LRG, BA, MONIRI, LNR, HAJJAR)
