"""The papers that the figures follow."""

LRG = "Sonthalia, Murray and Montúfar 2025 (arXiv:2510.01303)"
BA = "Ba, Erdogdu, Suzuki, Wang, Wu and Yang 2022 (arXiv:2205.01445)"
MONIRI = "Moniri, Lee, Hassani and Dobriban 2024 (arXiv:2310.07891)"
