#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs wheels anew with zip's best compression, which the build does not ask for.

  tools/pack_wheel.py WHEEL...
"""

import os
import sys
import zipfile

for path in sys.argv[1:]:
    packed = path + ".packed"
    with zipfile.ZipFile(path) as wheel, zipfile.ZipFile(packed, "w") as smaller:
        for entry in wheel.infolist():
            smaller.writestr(entry, wheel.read(entry), zipfile.ZIP_DEFLATED, compresslevel=9)
    os.replace(packed, path)
