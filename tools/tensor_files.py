# SPDX-License-Identifier: Apache-2.0
"""Tensors in files, written and read by their specifications alone, without numpy."""

import ast
import io
import json
import math
import struct
import zipfile

# safetensors' name, numpy's, and struct's code.
TYPES = {"F32": ("<f4", "f"), "F64": ("<f8", "d"), "I32": ("<i4", "i"), "I64": ("<i8", "q"),
         "U8": ("|u1", "B"), "BOOL": ("|b1", "?"), "F16": ("<f2", "e")}


class Tensor:
    def __init__(self, dtype, shape, values):
        self.dtype, self.shape, self.values = dtype, tuple(shape), list(values)
        assert len(self.values) == math.prod(self.shape), (shape, len(self.values))

    def offset(self, place):
        """Axes of size 1 broadcast."""
        offset = 0
        for size, i in zip(self.shape, place):
            offset = offset * size + (0 if size == 1 else i)
        return offset

    def at(self, *place):
        return self.values[self.offset(place)]

    def set(self, place, value):
        self.values[self.offset(place)] = value

    def add(self, place, value):
        self.values[self.offset(place)] += value

    def row(self, *place):
        """The values along the last axis."""
        begin, width = self.offset(place) * self.shape[-1], self.shape[-1]
        return self.values[begin:begin + width]

    def add_row(self, place, values, factor):
        begin = self.offset(place) * self.shape[-1]
        for n, x in enumerate(values):
            self.values[begin + n] += factor * x

    def bytes(self):
        if self.dtype == "BF16":  # cut off: for values that are bfloat16 already
            wide = struct.pack(f"<{len(self.values)}f", *self.values)
            return b"".join(wide[n + 2:n + 4] for n in range(0, len(wide), 4))
        return struct.pack(f"<{len(self.values)}{TYPES[self.dtype][1]}", *self.values)

    @staticmethod
    def of_bytes(dtype, shape, data):
        if dtype == "BF16":
            wide = b"".join(b"\0\0" + data[n:n + 2] for n in range(0, len(data), 2))
            return Tensor(dtype, shape, struct.unpack(f"<{math.prod(shape)}f", wide))
        return Tensor(dtype, shape, struct.unpack(f"<{math.prod(shape)}{TYPES[dtype][1]}", data))


def safetensors_bytes(tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        more = tensor.bytes()
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape,
                        "data_offsets": [len(data), len(data) + len(more)]}
        data += more
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(data):
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    rest = data[8 + length:]
    return {name: Tensor.of_bytes(e["dtype"], e["shape"], rest[slice(*e["data_offsets"])])
            for name, e in header.items()}


def npy_bytes(tensor, fortran=False):
    header = f"{{'descr': '{TYPES[tensor.dtype][0]}', 'fortran_order': {fortran}, 'shape': {tensor.shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + tensor.bytes()


def npz_bytes(tensors, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, tensor in tensors.items():
            with archive.open(name + ".npy", "w", force_zip64=True) as member:  # as numpy does
                member.write(npy_bytes(tensor))
    return file.getvalue()


def read_npz(data):
    tensors = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            array = archive.read(name)
            length = struct.unpack("<H", array[8:10])[0]
            header = ast.literal_eval(array[10:10 + length].decode())
            assert not header["fortran_order"] and (10 + length) % 64 == 0
            dtype = next(t for t, (descr, _) in TYPES.items() if descr == header["descr"])
            tensors[name.removesuffix(".npy")] = Tensor.of_bytes(dtype, header["shape"], array[10 + length:])
    return tensors


def write(path, tensors):
    path.write_bytes((npz_bytes if path.suffix == ".npz" else safetensors_bytes)(tensors))


def read(path):
    return (read_npz if path.suffix == ".npz" else read_safetensors)(path.read_bytes())
