#!/usr/bin/python3
"""Writes grid_sample_torch.txt: grid sampling, affine grids and their gradients, by PyTorch, in double, for
torch_table_test.cpp.

    /usr/bin/python3 tests/reference/grid_sample_torch.py > tests/reference/grid_sample_torch.txt
"""
import itertools

import torch
import torch.nn.functional as F

from torch_table import call, draw, extents

MODES = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}
PADDINGS = ("zeros", "border", "reflection")
ENDS = {"edges": False, "centres": True}
TOLERANCE = 1e-6  # relative: numbers of affine grids are rounded to f32 once


def spec(**tensors):
    return " ".join(f"{name}=f32:{extents(tensor)}" for name, tensor in tensors.items())


def sampled(x, grid, mode, padding, ends):
    x, grid = x.requires_grad_(), grid.requires_grad_()
    y = F.grid_sample(x, grid, MODES[mode], padding, ENDS[ends])
    dy = draw(*y.shape)
    dx, dgrid = torch.autograd.grad(y, (x, grid), dy)
    x, grid, y = x.detach(), grid.detach(), y.detach()
    words = f"mode={mode} padding={padding} ends={ends}"
    call(f"grid_sample {spec(x=x, grid=grid)} {words}", {"x": x, "grid": grid}, {"y": y})
    call(f"grid_sample_backward_data {spec(dy=dy, grid=grid, dx=dx)} {words}", {"dy": dy, "grid": grid}, {"dx": dx})
    call(f"grid_sample_backward_grid {spec(dy=dy, x=x, grid=grid)} {words}", {"dy": dy, "x": x, "grid": grid},
         {"dgrid": dgrid})


def mapped(theta, size, ends):
    theta = theta.requires_grad_()
    grid = F.affine_grid(theta, size, align_corners=ENDS[ends])
    dgrid = draw(*grid.shape)
    (dtheta,) = torch.autograd.grad(grid, theta, dgrid)
    theta, grid = theta.detach(), grid.detach()
    call(f"affine_grid {spec(theta=theta, grid=grid)} ends={ends}", {"theta": theta}, {"grid": grid}, TOLERANCE)
    call(f"affine_grid_backward {spec(dgrid=dgrid)} ends={ends}", {"dgrid": dgrid}, {"dtheta": dtheta}, TOLERANCE)


for mode, padding, ends in itertools.product(MODES, PADDINGS, ENDS):
    sampled(draw(2, 1, 3, 4), draw(2, 2, 3, 2), mode, padding, ends)
    if mode != "cubic":
        sampled(draw(1, 2, 2, 3, 2), draw(1, 2, 2, 2, 3), mode, padding, ends)
sampled(draw(1, 1, 1, 1), draw(1, 2, 3, 2), "linear", "reflection", "centres")
sampled(draw(1, 2, 3, 1), 8 * draw(1, 4, 4, 2), "cubic", "reflection", "edges")  # far outside
sampled(draw(1, 2, 2, 2), draw(1, 5, 4, 2), "linear", "border", "edges")  # several positions at an element
for ends in ENDS:
    mapped(draw(2, 2, 3), (2, 1, 3, 5), ends)
    mapped(draw(1, 3, 4), (1, 1, 2, 3, 5), ends)
mapped(draw(1, 2, 3), (1, 1, 1, 4), "centres")
