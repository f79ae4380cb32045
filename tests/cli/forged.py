# SPDX-License-Identifier: Apache-2.0
"""Models and checkpoints altered by somebody who makes every checksum right again."""

import ctypes
import json
import struct


class _Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_xxhash = ctypes.CDLL("libxxhash.so.0")
_xxhash.XXH3_128bits.restype = _Hash
_xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def xxh3_128(data):
    found = _xxhash.XXH3_128bits(data, len(data))
    return f"{found.high:016x}{found.low:016x}"


def manifest_bytes(body):
    line = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    return (json.dumps({"manifest": body, "xxh3-128": xxh3_128(line)}, indent=2, ensure_ascii=False) + "\n").encode()


def manifest_of(folder):
    return json.loads((folder / "MANIFEST.json").read_bytes())["manifest"]


def forge_manifest(folder, change):
    """The manifest, changed; of a model folder, the weights name it."""
    body = manifest_of(folder)
    change(body)
    (folder / "MANIFEST.json").write_bytes(manifest_bytes(body))
    if body["kind"] == "model":
        line = xxh3_128((folder / "MANIFEST.json").read_bytes())
        forge_tensors(folder / "model.safetensors", lambda header, data: header["__metadata__"].update(manifest=line))


def forge(folder, name, data):
    """A file of the folder becomes these bytes, and the manifest says so."""
    (folder / name).write_bytes(data)

    def change(body):
        for entry in body["files"]:
            if entry["name"] == name:
                entry.update({"size": len(data), "xxh3-128": xxh3_128(data)})
    forge_manifest(folder, change)


def forge_json(folder, name, change):
    content = json.loads((folder / name).read_bytes())
    change(content)
    forge(folder, name, (json.dumps(content, indent=2) + "\n").encode())


def tensors_bytes(header, data):
    """With a checksum of its own."""
    text = json.dumps(header, separators=(",", ":"))
    text = text.replace(header["__metadata__"]["xxh3-128"], "0" * 32).encode()
    text += b" " * (-len(text) % 8)
    whole = struct.pack("<Q", len(text)) + text + data
    return whole.replace(b"0" * 32, xxh3_128(whole).encode(), 1)


def forge_tensors(path, change):
    """Changes header and values (a bytearray), and makes the file's own checksum right."""
    whole = path.read_bytes()
    length = struct.unpack("<Q", whole[:8])[0]
    header, data = json.loads(whole[8:8 + length]), bytearray(whole[8 + length:])
    change(header, data)
    path.write_bytes(tensors_bytes(header, bytes(data)))


def forge_listed_tensors(folder, name, change):
    forge_tensors(folder / name, change)
    forge(folder, name, (folder / name).read_bytes())


def with_checksum(data):
    """The lines of a tokenizer, and their checksum."""
    checksum = 0xcbf29ce484222325
    for byte in data:
        checksum = (checksum ^ byte) * 0x100000001b3 % 2**64
    return data + f"checksum {checksum:016x}\n".encode()


def tokenizer_bytes(kind, characters, count=None):
    """Of this many code points, or so it says."""
    text = f"fovea-tokenizer 1\nkind {kind}\ncharacters {len(characters) if count is None else count}\n"
    return with_checksum((text + "".join(f"{c}\n" for c in characters)).encode())
