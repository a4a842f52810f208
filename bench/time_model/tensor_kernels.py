"""Compiles tensor kernels that others have measured, and writes their launches for `bench_time_model --launches`.

    tensor_kernels.py TABLE SOURCES OUT [--rows N] [--only NAME]...

TABLE is the CSV file of measured times; its columns are source, kernel, gpu, M, N, K, dtype, measured_ms_or_tflops,
unit and note. SOURCES holds a folder for each repository that its rows name, at the commit named there: ccglib,
mma-matmul, tensor-core-hgemm, cuda_hgemm, learn-cuda. They are compiled where they lie, and nothing of them is kept
here. OUT gets the cubins and `launches.csv`. Needs nvcc. Kernels without a public source are left out.
"""

import argparse
import csv
import hashlib
import os
import re
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

POINTERS = [0x7F0000000000, 0x7F1000000000, 0x7F2000000000]
COLUMNS = "table,row,ms,device,arch,sms,clock_mhz,l2_bytes,dram_gbs,cubin,kernel,grid,block,shared,parameters"


def pack(form, *values):
    return struct.pack("<" + form, *values).hex()


class Device:
    """Figures of a card that the clock needs."""

    def __init__(self, name, arch, sms, clock, l2_mib, dram_gbs):
        self.cells = [name, arch, sms, clock, l2_mib << 20, dram_gbs]
        self.arch = arch


ADA_4000 = Device("NVIDIA RTX 4000 Ada Generation", 89, 48, 1485, 48, 360)
RTX_4090 = Device("NVIDIA GeForce RTX 4090", 89, 128, 2520, 72, 1008)
A100 = Device("NVIDIA A100-SXM4-40GB", 80, 108, 1410, 40, 1555)
RTX_3090 = Device("NVIDIA GeForce RTX 3090", 86, 82, 1695, 6, 936)
RTX_5090 = Device("NVIDIA GeForce RTX 5090", 120, 170, 2407, 96, 1792)


class Build:
    """A file to compile, with its options, and text that asks for instances of its templates."""

    def __init__(self, folder, file, options=(), instances=""):
        self.folder, self.file, self.options, self.instances = folder, file, list(options), instances


class Launch:
    def __init__(self, table, row, ms, device, build, kernel, grid, block, shared, parameters):
        self.table, self.row, self.ms, self.device, self.build = table, row, ms, device, build
        self.kernel, self.grid, self.block, self.shared, self.parameters = kernel, grid, block, shared, parameters


def milliseconds(row):
    """Time of a row; products do 2 M N K operations."""
    value = float(row["measured_ms_or_tflops"])
    if row["unit"] == "ms":
        return value
    return 2.0 * int(row["M"]) * int(row["N"]) * int(row["K"]) / value * 1e-9


def ccglib(row):
    """Complex product; a row names the warps of a block along N (by) and M (bz), and the block."""
    names = ("by", "bz", "BM", "BN", "NBUF")
    by, bz, bm, bn, buffers = (int(re.search(rf"{name}=(\d+)", row["kernel"])[1]) for name in names)
    m, n, k = int(row["M"]), int(row["N"]), int(row["K"])
    values = {"block_size_x": 32, "block_size_y": by, "block_size_z": bz, "BATCH_SIZE": "1UL", "M_GLOBAL": f"{m}UL",
              "N_GLOBAL": f"{n}UL", "K_GLOBAL": f"{k}UL", "K_PADDING": "0UL", "NBIT": 16, "WARP_SIZE": 32,
              "M_PER_BLOCK": bm, "M_PER_WARP": bm // bz, "M_PER_WMMA": 16, "N_PER_BLOCK": bn, "N_PER_WARP": bn // by,
              "N_PER_WMMA": 16, "K_PER_WMMA": 16, "NBUFFER": buffers}
    options = [f"-D{name}={value}" for name, value in values.items()]
    options += ["-DCOMPLEX_MIDDLE", "-DA_ROW_MAJOR", "-DB_COL_MAJOR", "-DC_ROW_MAJOR", "-std=c++17", "-Iinclude"]
    yield Launch("complex_wmma", row["kernel"].split(" ", 1)[1], milliseconds(row), ADA_4000,
                 Build("ccglib", "kernels/gemm_kernel_float.cu", options), "wmma_complex_gemm_opt",
                 (n // bn, m // bm, 1), (32, by, bz), 0, pack("3Q", *POINTERS))


def mma_matmul(row):
    name = row["kernel"]
    if not name.startswith("mma_matmul"):
        return
    tile = {"1_0": 32, "3_1": 128}.get(name[-3:], 64)
    size = int(row["M"])
    yield Launch("mma_4090", name, milliseconds(row), RTX_4090, Build("mma-matmul", f"kernel_{name[-3]}.cu"), name,
                 (size // tile, size // tile, 1), (16, 16, 1), 0, pack("3Q3i", *POINTERS, size, size, size))


def tensor_core_hgemm(row):
    """A step of the ladder was measured with the best of several tiles; some of them are tried."""
    name, size = row["kernel"][3:], int(row["M"])
    if name == "cuBLAS" or size not in (4096, 8192):
        return
    file = {"wmma_async": "wmma_async_copy"}.get(name, name)
    tiles = {"01": [(128, 128, 16, 32, 32), (128, 64, 16, 32, 16)],
             "05": [(256, 128, 32, 64, 64, 3), (128, 128, 32, 64, 64, 3)],
             "06": [(256, 128, 32, 64, 64, 3), (128, 128, 32, 64, 64, 3)],
             "07": [(256, 128, 32, 64, 64, 3, 1, 16), (128, 128, 32, 64, 64, 3, 1, 16)]}
    for tile in tiles.get(row["kernel"][:2], [(128, 128, 32, 64, 64), (128, 128, 32, 32, 32), (256, 128, 32, 64, 64)]):
        bm, bn, bk, wm, wn = tile[:5]
        stages = tile[5] if len(tile) > 5 else 1
        padding = 8 if row["kernel"][:2] >= "04" else 0
        shared = stages * (bm * (bk + padding) + bk * (bn + padding)) * 2
        text = ", ".join(str(value) for value in tile[:6]) + (", true, 16" if len(tile) > 6 else "")
        arguments = "int, int, int, __half, const __half*, const __half*, __half, __half*"
        instance = f"template __global__ void {name}<{text}>({arguments});"
        grid = (size // bn, size // bm, 1) if len(tile) <= 6 else (size // bn * (size // bm), 1, 1)
        parameters = pack("3ie2xQQe6xQ", size, size, size, 1.0, POINTERS[0], POINTERS[1], 0.0, POINTERS[2])
        yield Launch("wmma_a100", f"{row['kernel']} {size}", milliseconds(row), A100,
                     Build("tensor-core-hgemm", f"src/{row['kernel'][:2]}_{file}.cuh", (), instance), name, grid,
                     (bm // wm * (bn // wn) * 32, 1, 1), shared, parameters)


def cuda_hgemm(row):
    name, size = row["kernel"], int(row["M"])
    if name.startswith("cuBLAS"):
        return
    kind = name.replace("-", "_").lower()
    stages = {"stage2": 2, "stage3": 3, "stage4": 4}.get(kind.split("_")[-1], 1)
    if kind.endswith("ps2r") or kind.endswith("pg2s"):
        stages = 2 if "pg2s" in kind else 1
    stride = 40 if kind.startswith("wmma") else 32
    out_stride = 136 if kind.startswith("wmma") else 128
    shared = max((256 + 128) * stride * 2 * stages, 256 * out_stride * 2)
    yield Launch("hgemm_3090", f"{name} {size}", milliseconds(row), RTX_3090,
                 Build("cuda_hgemm", f"src/{kind.split('_')[0]}/{kind}.cu", ["-Isrc/common"]), "Kernel",
                 (16, -(-size // 256), -(-size // 2048)), (256, 1, 1), shared,
                 pack("3Q3Q", *POINTERS, size, size, size))


def learn_cuda(row):
    name, size = row["kernel"], int(row["M"])
    if not re.fullmatch(r"v\db?", name) or "size sweep" in row["note"]:
        return
    kernels = {"v1": "matmul_v1_kernelILi128ELi128ELi64ELi2ELi2ELi64ELb0ELb0E",
               "v2": "matmul_v1_kernelILi128ELi128ELi64ELi2ELi2ELi64ELb1ELb0E",
               "v3": "matmul_v1_kernelILi128ELi128ELi64ELi2ELi2ELi72ELb1ELb0E",
               "v4": "matmul_v1_kernelILi128ELi128ELi64ELi2ELi2ELi64ELb1ELb1E", "v5": "matmul_v5_kernel",
               "v6": "Li2ELi2ELi2ELi0E", "v6b": "Li2ELi2ELi2ELi8E"}
    file = f"02b_matmul_sm80/matmul_v{5 if name == 'v5' else 6 if name.startswith('v6') else 1}.cu"
    shared = (128 + 128) * (72 if name == "v3" else 64) * 2 * (2 if name.startswith("v6") else 1)
    build = Build("learn-cuda", file, ["-std=c++17", "--expt-relaxed-constexpr"])
    yield Launch("mma_5090", name, milliseconds(row), RTX_5090, build, kernels[name],
                 (size // 128 * (size // 128), 1, 1), (128, 1, 1), shared,
                 pack("3Q3i", *POINTERS, size, size, size))


SOURCES = {"nlesc-recruit/": ccglib, "spatters/": mma_matmul, "yencal/": tensor_core_hgemm, "Bruce-Lee-LY/": cuda_hgemm,
           "gau-nernst/": learn_cuda}


def sampled(rows, most):
    """Evenly spread over the measured times."""
    rows = sorted(rows, key=milliseconds)
    if most == 0 or most >= len(rows):
        return rows
    return [rows[i * (len(rows) - 1) // max(1, most - 1)] for i in range(most)]


def compile_file(build, arch, sources, out):
    """The cubin's name in OUT, or nothing if it does not compile."""
    folder = (sources / build.folder).resolve()
    text = f'#include "{folder / build.file}"\n{build.instances}\n'
    key = f"{arch}{build.options}{text}"
    name = f"{build.folder}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.cubin"
    if (out / name).exists():
        return name
    source = (out / name).with_suffix(".cu")
    source.write_text(text)
    command = ["nvcc", "-cubin", f"-arch=sm_{arch}", "-O3", *build.options, "-o", str((out / name).resolve())]
    command.append(str(source.resolve()))
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{build.file}: {done.stderr.splitlines()[:3]}", file=sys.stderr)
        return None
    return name


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int, default=0, help="of each source, spread over the measured times; 0 for all")
    parser.add_argument("--only", action="append", default=[], help="beginning of a source's name")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with open(arguments.table, newline="") as file:
        rows = list(csv.DictReader(file))
    launches = []
    for source, launches_of in SOURCES.items():
        if arguments.only and not any(source.startswith(name) for name in arguments.only):
            continue
        measured = [row for row in rows if row["source"].startswith(source) and list(launches_of(row))]
        for row in sampled(measured, arguments.rows):
            launches += launches_of(row)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        compiled = lambda one: compile_file(one.build, one.device.arch, arguments.sources, arguments.out)
        cubins = list(pool.map(compiled, launches))
    with open(arguments.out / "launches.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS.split(","))
        for one, cubin in zip(launches, cubins):
            if cubin is None:
                continue
            writer.writerow([one.table, one.row, f"{one.ms:.6g}", *one.device.cells, cubin, one.kernel,
                             "x".join(map(str, one.grid)), "x".join(map(str, one.block)), one.shared, one.parameters])


if __name__ == "__main__":
    main()
