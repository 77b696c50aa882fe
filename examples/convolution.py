"""The gradient of a convolution's filter from the matrix gradient, part by part, against PyTorch's own (LRG, Remark 1)."""

import torch

import gradrank as gr

d, k = 200, 9
problem = gr.Problem(
    inputs=gr.SpikedGaussian(n=150, d=d, nu=0.3),
    network=gr.TwoLayer(m=d - k + 1, activation="softplus", inner="conv", kernel_size=k),
)
draw = problem.draw(seed=0)
parts = gr.decompose(draw)
ours = gr.filter_gradient(parts.gradient, k)

layer = torch.nn.Conv1d(1, 1, k, bias=False, dtype=torch.float64)
with torch.no_grad():
    layer.weight.copy_(draw.network.W[0, :k].reshape(1, 1, k))
f = draw.network.gamma * torch.nn.functional.softplus(layer(draw.X[:, None, :])).flatten(1) @ draw.network.a
(0.5 * (f - draw.y) ** 2).mean().backward()
theirs = layer.weight.grad.reshape(1, k)

print("relative difference from torch.nn.Conv1d:", float((ours - theirs).norm() / theirs.norm()))
for name, part in parts.items():
    print(f"{name:15s} {float(gr.filter_gradient(part, k).norm()):.5f}")
