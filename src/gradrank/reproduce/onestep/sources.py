"""The papers that the one-step figures follow."""

BA = "Ba, Erdogdu, Suzuki, Wang, Wu and Yang 2022 (arXiv:2205.01445)"
MONIRI = "Moniri, Lee, Hassani and Dobriban 2024 (arXiv:2310.07891)"
CUI = "Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová and Loureiro 2024 (arXiv:2402.04980)"
