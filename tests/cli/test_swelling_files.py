# SPDX-License-Identifier: Apache-2.0
"""Small files that unpack to gigabytes: what is read stays within 64 MiB and twice the tensors of the call."""

import json
import math
import os
import struct
import unittest
import zlib

from support import CommandTest

import conformance

MIB = 1 << 20


def header_of(shape, descr="<f4"):
    """Of an array, without its values."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def deflated(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH)


class Member:
    """Of an archive: an array of zeros, deflated without ever being there; `claimed` is what it says to unpack to."""

    def __init__(self, header, zeros, claimed=None):
        pieces, rest = divmod(zeros, MIB)
        self.packed = deflated(header + bytes(rest)) + deflated(bytes(MIB)) * pieces + b"\x03\x00"
        self.size = len(header) + zeros if claimed is None else claimed
        self.crc = zlib.crc32(header + bytes(rest))
        for _ in range(pieces):
            self.crc = zlib.crc32(bytes(MIB), self.crc)


def floats(*shape):
    return Member(header_of(shape), 4 * math.prod(shape))


def holes(path, tensors):
    """A safetensors file of such types and shapes; its values take no room on the disk."""
    header, end = {}, 0
    for name, (dtype, shape) in tensors.items():
        begin, end = end, end + {"F32": 4, "F16": 2, "F64": 8}[dtype] * math.prod(shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    os.truncate(path, 8 + len(text) + end)


def archive(members):
    """The bytes of a .npz of such members, by name."""
    file, directory = bytearray(), b""
    for name, member in members.items():
        name = (name + ".npy").encode()
        common = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, member.crc, len(member.packed), member.size, len(name), 0)
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, len(file)) + name
        file += b"PK\x03\x04" + common + name + member.packed
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(file), 0)
    return bytes(file) + directory + b"PK\x05\x06" + end


class SwellingFiles(CommandTest):
    def refused(self, status, file, *needles):
        done, peak = self.peak_of("attention", file, "-o", self.folder / "out.npz")
        self.assert_error(done, status, *needles)
        self.assertLess(peak, 64 * MIB)
        self.assertFalse((self.folder / "out.npz").exists())

    def npz(self, members):
        path = self.folder / "in.npz"
        path.write_bytes(archive(members))
        return path

    def test_members_that_nobody_asks_for(self):
        member = floats(64, MIB)
        file = self.npz({f"x{n}": member for n in range(30)})
        self.assertLess(file.stat().st_size, 10 * MIB)
        self.refused(3, file, "in.npz", "no use for a tensor 'x0'")
        self.refused(3, self.npz({"q": member, "k": member, "v": member, "x": member}), "no use for a tensor 'x'")

    def test_shapes_and_types_are_looked_at_first(self):
        rows, one, two = floats(64, MIB), floats(1, MIB, 1, 64), floats(2, MIB // 2, 1, 64)
        booleans = Member(header_of([1, MIB, 1, 256], "|b1"), 256 * MIB)
        self.refused(2, self.npz({"q": rows, "k": rows, "v": rows}), "q must be [B, T, H, D]")
        self.refused(3, self.npz({"q": booleans, "k": one, "v": one}), "q must hold float32")
        self.refused(2, self.npz({"q": one, "k": two, "v": one}), "axis B is 2, and 1 in q")
        self.refused(3, self.npz({"q": one, "k": one}), "the tensor v is missing")

    def test_headers_that_swell(self):
        for start in [b"\x93NUMPY\x02\x00" + struct.pack("<I", 256 * MIB), b"\x93NUMPY\x01\x00\xff\xff"]:
            bomb = Member(start, 256 * MIB)
            self.refused(3, self.npz({"q": bomb, "k": bomb, "v": bomb}), "'q'", "at most 10000")

    def test_members_that_hold_more_than_they_claim(self):
        header = header_of([1, 4, 1, 64])
        member = Member(header, 256 * MIB, claimed=len(header) + 1024)
        self.refused(3, self.npz({"q": member, "k": member, "v": member}), "'q.npy' does not deflate to the")

    def test_members_that_hold_less_than_they_claim(self):
        header = header_of([1, 4 * MIB, 1, 1])
        member = Member(header, 15 * MIB, claimed=len(header) + 16 * MIB)
        member.packed += bytes(1000)  # so many could unpack to that
        self.refused(3, self.npz({"q": member, "k": member, "v": member}), "'q.npy' does not deflate to the")

    def test_a_large_safetensors_file_is_not_read_for_its_names(self):
        path = self.folder / "in.safetensors"
        for tensors, status, needle in [
                ({"x": ("F32", [1024, MIB])}, 3, "no use for a tensor 'x'"),
                ({name: ("F32", [1024, MIB]) for name in "qkv"}, 2, "q must be [B, T, H, D]"),
                ({name: ("F16", [1, MIB, 1, 64]) for name in "qkv"}, 3, "'q' is F16")]:
            holes(path, tensors)
            self.refused(status, path, needle)

    def test_more_than_there_is_memory(self):
        holes(self.folder / "in.safetensors", {name: ("F32", [1, 1 << 20, 1 << 10, 1 << 10]) for name in "qkv"})
        self.refused(6, self.folder / "in.safetensors", "its tensors would take 12.0 TiB")

    def test_what_is_wanted_is_unpacked_where_it_belongs(self):
        file = self.npz({"q": floats(1, 8192, 1, 32), "k": floats(1, MIB, 1, 32), "v": floats(1, MIB, 1, 32)})
        done, peak = self.peak_of("attention", file, "-o", self.folder / "out.npz", "--window", "0,0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(peak, 64 * MIB + 257 * MIB)  # once

    def test_a_gradient_that_is_not_asked_for_is_not_unpacked(self):
        file = self.npz({"q": floats(1, 8192, 1, 32), "k": floats(1, 1, 1, 32), "v": floats(1, 1, 1, 8192),
                         "do": floats(1, 8192, 1, 8192)})
        done, peak = self.peak_of("attention", file, "--plan")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(peak, 64 * MIB)


class SwellingKit(CommandTest):
    def test_a_kit_that_expects_what_is_not_made(self):
        kit = self.folder / "kit"
        self.succeed("conformance", "write", kit)
        for name, tensors in [("inputs", {"x": ("F32", [256, MIB])}), ("expected", {"o": ("F64", [128, MIB])})]:
            with self.subTest(file=name):
                index = conformance.read_kit(kit)
                case = index["cases"][0]
                path = kit / case[name]["file"]
                holes(path, tensors)
                crc = 0
                with path.open("rb") as file:
                    while piece := file.read(MIB):
                        crc = zlib.crc32(piece, crc)
                case[name] = {"file": path.name, "size": path.stat().st_size, "crc32": f"{crc:08x}"}
                conformance.write_index(kit, index)
                done, peak = self.peak_of("conformance", "check", kit, "--precision", "f64")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(b"FAIL  f64  " + case["name"].encode(), done.stdout)
                self.assertLess(peak, 128 * MIB)


if __name__ == "__main__":
    unittest.main()
