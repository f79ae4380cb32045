// SPDX-License-Identifier: Apache-2.0
// Reads the weights that fovea/report/weight_code.h writes: the codes are explained there.
'use strict';

// The kinds of cells.
const STORED = 0, MASKED = 1, MISSING = 2;

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

class BitReader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;  // in bits
  }

  bit() {
    const bit = this.bytes[this.at >> 3] >> (7 - (this.at & 7)) & 1;
    ++this.at;
    return bit;
  }

  // Up to 25 bits.
  take(count) {
    const {bytes} = this, byte = this.at >> 3;
    const word = bytes[byte] << 24 | bytes[byte + 1] << 16 | bytes[byte + 2] << 8 | bytes[byte + 3];
    const value = (word << (this.at & 7)) >>> (32 - count);
    this.at += count;
    return count === 0 ? 0 : value;
  }

  rice(k) {
    let ones = 0;
    while (ones < 16 && this.bit()) ++ones;
    return ones === 16 ? this.take(22) : ones << k | this.take(k);
  }
}

// 1 where a cell is kept, row after row.
function readMask(base64, queries, keys) {
  const bytes = bytesOf(base64), kept = new Uint8Array(queries * keys);
  let at = 0;
  const number = () => {
    let value = 0, shift = 0, byte;
    do {
      byte = bytes[at++];
      value |= (byte & 127) << shift;
      shift += 7;
    } while (byte > 127);
    return value;
  };
  for (let query = 0; query < queries; ++query) {
    let cell = query * keys;
    for (let runs = number(); runs > 0; --runs) {
      cell += number();
      const end = cell + number();
      kept.fill(1, cell, end);
      cell = end;
    }
  }
  return kept;
}

// One row into `head`: its integers, and which cells are missing.
function readRow(bits, begin, end, head, format) {
  const place = code => !format.negative ? code : code & 1 ? -(code + 1) / 2 : code / 2;
  const k = bits.take(5);
  if (k < 31) {
    for (let cell = begin; cell < end; ++cell) {
      if (head.kinds[cell] === STORED) head.values[cell] = place(bits.rice(k));
    }
    return;
  }
  const gapK = bits.take(5), valueK = bits.take(5), count = bits.take(16);
  const isCut = format.strongest > 0 && count === format.strongest;
  let cell = begin;
  const pass = gap => {
    for (; cell < end; ++cell) {
      if (head.kinds[cell] !== STORED) continue;
      if (gap-- === 0) return;
      if (isCut) head.kinds[cell] = MISSING;
    }
  };
  for (let n = 0; n < count; ++n) {
    pass(bits.rice(gapK));
    head.values[cell++] = place(bits.rice(valueK) + 1);
  }
  pass(Infinity);
}

// The smallest of the integers that are not 0: what is left out of their row is no larger.
function smallestOf(values) {
  let smallest = Infinity;
  for (const value of values) {
    if (value !== 0 && Math.abs(value) < smallest) smallest = Math.abs(value);
  }
  return smallest;
}

// {values: integers, kinds} of one head; format: {decimals, negative, strongest}.
function readHead(base64, kept, queries, keys, format) {
  const head = {values: new Float32Array(queries * keys), kinds: new Uint8Array(queries * keys)};
  for (let cell = 0; cell < kept.length; ++cell) head.kinds[cell] = kept[cell] ? STORED : MASKED;
  const bits = new BitReader(bytesOf(base64));
  for (let query = 0; query < queries; ++query) {
    readRow(bits, query * keys, (query + 1) * keys, head, format);
  }
  return head;
}

// The largest possible mean of the heads in this cell, which one of them leaves out.
function mostOf(heads, row, keys, cell) {
  let sum = 0;
  for (const {values, kinds} of heads) {
    sum += kinds[cell] === MISSING ? smallestOf(values.subarray(row * keys, (row + 1) * keys))
      : Math.abs(values[cell]);
  }
  return Math.ceil(sum / heads.length);
}

// The mean of heads: masked where all are, missing where one is.
function meanOfHeads(heads) {
  const size = heads[0].values.length;
  const mean = {values: new Float32Array(size), kinds: new Uint8Array(size)};
  for (let cell = 0; cell < size; ++cell) {
    let sum = 0, masked = 0, missing = 0;
    for (const head of heads) {
      sum += head.values[cell];
      masked += head.kinds[cell] === MASKED;
      missing += head.kinds[cell] === MISSING;
    }
    mean.values[cell] = sum / heads.length;
    mean.kinds[cell] = masked === heads.length ? MASKED : missing > 0 ? MISSING : STORED;
  }
  return mean;
}
