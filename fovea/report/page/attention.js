// SPDX-License-Identifier: Apache-2.0
// The attention page: controls, heat map, the chosen cell. weights.js reads, lines.js draws lines.
//
// The heat map's canvas (#weights) has one pixel for each cell. Its alpha is 255 times the shade:
// |w| / top, or the square root of that if data-shading is "root"; data-top says top. So
// w = top * alpha / 255, or top * (alpha / 255)^2.
'use strict';

const byId = id => document.getElementById(id);
const jsonOf = id => JSON.parse(byId(id).textContent);
const began = performance.now();
const page = jsonOf('page'), masks = jsonOf('masks');
const unit = 10 ** page.decimals;
// The maps of each layer: it may have several, of which the first stands for it.
const layers = [];
page.maps.forEach((map, n) => map.ofLayerBefore ? layers[layers.length - 1].push(n) : layers.push([n]));
const state = {map: page.firstMap, head: 0, shading: 'root', cell: 16, row: 0, column: 0};
let shown = null;  // {map, queries, keys, values, kinds, heads: those of which it is the mean, top}
let layer = null;  // {index, data, heads: those read so far}

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function say(name, ...values) {
  return page.words[name].replace(/\{(\d)\}/g, (_, n) => values[n]);
}

// The digits that the page has; a mean of heads has them, too.
function numberText(value) {
  return (value / unit).toFixed(Math.max(0, page.decimals));
}

function cut(token, most) {
  const characters = Array.from(token);
  return characters.length <= most ? token : characters.slice(0, most).join('') + '\u2026';
}

function nameOf(text, token) {
  const {tokens, positions} = page.texts[text];
  return {token: cut(tokens[token], 100), place: positions.length ? positions[token] : token};
}

function headOf(number) {
  const {queryText, keyText} = page.maps[layer.index];
  const queries = page.texts[queryText].tokens.length, keys = page.texts[keyText].tokens.length;
  if (!layer.heads[number]) {
    const mask = masks[layer.data.masks[number]];
    layer.heads[number] =
      readHead(layer.data.heads[number], readMask(mask, queries, keys), queries, keys, page);
  }
  return layer.heads[number];
}

function choose() {
  if (!layer || layer.index !== state.map) {
    layer = {index: state.map, data: jsonOf('map-' + state.map), heads: []};
  }
  const map = page.maps[state.map];
  state.head = Math.min(state.head, map.heads - 1);
  const heads = state.head >= 0 ? [headOf(state.head)]
    : Array.from({length: map.heads}, (_, head) => headOf(head));
  const weights = heads.length === 1 ? heads[0] : meanOfHeads(heads);
  let top = 0;
  for (const value of weights.values) top = Math.max(top, Math.abs(value));
  shown = {map, queries: page.texts[map.queryText].tokens, keys: page.texts[map.keyText].tokens,
    values: weights.values, kinds: weights.kinds, heads,
    top: state.shading === 'one' ? unit : top || unit};
  state.row = Math.min(state.row, shown.queries.length - 1);
  state.column = Math.min(state.column, shown.keys.length - 1);
}

function shadeOf(cell) {
  const share = Math.min(1, Math.abs(shown.values[cell]) / shown.top);
  return state.shading === 'root' ? Math.sqrt(share) : share;
}

// A colour of the style sheet as a clear pixel: its bytes are red, green, blue, alpha.
function colour(name) {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const [red, green, blue] = [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
  return red | green << 8 | blue << 16;
}

const OPAQUE = 255 << 24;

function paint(canvas, pixelOf) {
  const width = shown.keys.length, height = shown.queries.length;
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d', {willReadFrequently: true});
  const image = context.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
  for (let cell = 0; cell < pixels.length; ++cell) pixels[cell] = pixelOf(cell);
  context.putImageData(image, 0, 0);
}

function drawPixels() {
  const heat = colour('--heat'), negative = colour('--negative');
  const ground = colour('--ground'), missing = colour('--missing');
  paint(byId('weights'), cell =>
    (shown.values[cell] < 0 ? negative : heat) | Math.round(255 * shadeOf(cell)) << 24);
  // Below them; where it is clear, the stripes of masked cells show.
  paint(byId('grounds'), cell => {
    const kind = shown.kinds[cell];
    return kind === MASKED ? ground : (kind === MISSING ? missing : ground) | OPAQUE;
  });
  byId('weights').dataset.top = shown.top / unit;
  byId('weights').dataset.shading = state.shading;
}

const UPRIGHT = /([\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}])/u;

// A name that is written downwards. Upright characters have no height there in some fonts, such as
// WenQuanYi Zen Hei: each gets a square of its own. So does a name of one character, of any script.
function downwards(name) {
  const made = element('bdi'), parts = [...name].length === 1 ? ['', name] : name.split(UPRIGHT);
  made.append(...parts.map((part, n) => n % 2 ? element('span', part) : part));
  return made;
}

function labels(names, className) {
  const made = element('div', undefined, className);
  const label = className === 'columns' ? downwards : name => element('bdi', name);
  if (names.length <= 2048) made.append(...names.map(name => label(cut(name, 24))));
  return made;
}

const axesOf = map => [map.queryText, map.keyText, map.rowsAre, map.columnsAre].join('\n');
const layerOf = map => layers.findIndex(maps => maps.includes(map));

// The parts of the map; they change with the layer's texts alone.
function buildMap() {
  const map = byId('map'), stack = element('div', undefined, 'stack');
  for (const id of ['grounds', 'weights']) {
    const canvas = element('canvas');
    canvas.id = id;
    stack.append(canvas);
  }
  const cursor = element('div', undefined, 'cursor');
  cursor.id = 'cursor';
  stack.append(cursor);
  stack.addEventListener('pointermove', event => pointAt(event, stack));
  stack.addEventListener('pointerdown', event => pointAt(event, stack));
  const corner = element('div', undefined, 'corner');
  corner.append(element('span', (shown.map.columnsAre || say('key')) + ' \u2192'),
    element('span', (shown.map.rowsAre || say('query')) + ' \u2193'));
  map.replaceChildren(corner, labels(shown.keys, 'columns'), labels(shown.queries, 'rows'), stack);
  map.dataset.texts = axesOf(shown.map);
}

function pointAt(event, stack) {
  const box = stack.getBoundingClientRect();
  moveTo(Math.floor((event.clientY - box.top) / state.cell),
    Math.floor((event.clientX - box.left) / state.cell));
}

function legend() {
  const scale = element('span', undefined, 'scale ' + state.shading);
  const ends = element('span', undefined, 'ends');
  ends.append(element('span', '0'), scale, element('span', numberText(shown.top)));
  const parts = [ends];
  const swatch = (className, text) => {
    const part = element('span', text, 'swatch');
    part.prepend(element('i', undefined, className));
    parts.push(part);
  };
  if (page.negative) swatch('negative', say('negative'));
  if (shown.kinds.includes(MASKED)) swatch('masked', say('legendMasked'));
  if (shown.kinds.includes(MISSING)) swatch('missing', say('legendMissing'));
  byId('legend').replaceChildren(...parts);
}

// On paper a cell may be smaller than chosen: see attention.css.
function resize() {
  const map = byId('map');
  map.style.setProperty('--chosen', state.cell + 'px');
  map.style.setProperty('--keys', shown.keys.length);
  map.style.setProperty('--queries', shown.queries.length);
  map.classList.toggle('small', state.cell < 11);
}

function draw() {
  choose();
  if (byId('map').dataset.texts !== axesOf(shown.map)) buildMap();
  resize();
  drawPixels();
  legend();
  sayChoices();
  drawLines(shown, shadeOf);
  byId('row').replaceChildren();  // that of another map
  markHead();
  moveTo(state.row, state.column);
}

// Shows the choices of the controls as text, since controls are not printed.
function sayChoices() {
  const chosen = ['layer', 'part', 'head', 'shading'].map(byId)
    .filter(select => select && !select.parentElement.hidden);
  byId('choices').replaceChildren(...chosen.map(select => {
    const part = element('div');
    part.append(element('dt', select.parentElement.firstChild.textContent),
      element('dd', select.selectedOptions[0].textContent));
    return part;
  }));
}

// The cell of the head in each table of statistics.
function markHead() {
  for (const table of document.querySelectorAll('table.heads:not(.pairs)')) {
    table.querySelectorAll('.chosen').forEach(cell => cell.classList.remove('chosen'));
    table.tBodies[0].rows[layerOf(state.map)].cells[state.head + 1].classList.add('chosen');
  }
}

function describe(row, column) {
  const cell = row * shown.keys.length + column, kind = shown.kinds[cell];
  const query = nameOf(shown.map.queryText, row), key = nameOf(shown.map.keyText, column);
  const number = numberText(kind === MISSING ? mostOf(shown.heads, row, shown.keys.length, cell)
    : shown.values[cell]);
  const value = kind === MASKED ? say('masked') : kind === MISSING ? say('missing', number) : number;
  const name = ({token, place}) => token === String(place) ? token : `\u201c${token}\u201d (${place})`;
  const {rowsAre, columnsAre} = shown.map;
  const sentence = kind === MASKED ? say('isMasked', name(query), name(key))
    : kind === MISSING ? say('isMissing', name(query), name(key), number)
    : rowsAre ? say('pair', rowsAre, name(query), columnsAre, name(key), number)
    : say('weight', name(query), name(key), number);
  return {query, key, value, sentence};
}

function tokenParts(word, {token, place}) {
  const parts = [element('span', word + ' ', 'quiet'), element('bdi', token, 'token-name')];
  if (token !== String(place)) parts.push(element('span', ' ' + place, 'quiet'));
  return parts;
}

// Chooses a cell, and says what it is.
function moveTo(row, column) {
  row = Math.max(0, Math.min(row, shown.queries.length - 1));
  column = Math.max(0, Math.min(column, shown.keys.length - 1));
  const isNewRow = row !== state.row || !byId('row').hasChildNodes();
  state.row = row;
  state.column = column;
  const said = describe(row, column);
  byId('reading').replaceChildren(element('b', said.value),
    ...tokenParts(shown.map.rowsAre || say('query'), said.query), element('span', ' \u2192 ', 'quiet'),
    ...tokenParts(shown.map.columnsAre || say('key'), said.key));
  const map = byId('map'), cursor = byId('cursor');
  cursor.style.setProperty('--row', row);
  cursor.style.setProperty('--column', column);
  map.querySelectorAll('bdi.on').forEach(label => label.classList.remove('on'));
  map.querySelector('.rows').children[row]?.classList.add('on');
  map.querySelector('.columns').children[column]?.classList.add('on');
  if (isNewRow) strongestOf(row);
  markLines(shown, shadeOf, row, column, isNewRow);
  return said.sentence;
}

// The table of the strongest keys of a query.
function strongestOf(row) {
  const begin = row * shown.keys.length, order = [];
  for (let key = 0; key < shown.keys.length; ++key) {
    if (shown.values[begin + key] !== 0) order.push(key);
  }
  const size = key => Math.abs(shown.values[begin + key]);
  order.sort((a, b) => size(b) - size(a) || a - b);
  byId('row').replaceChildren(...order.slice(0, 8).map(key => {
    const line = element('tr'), head = element('th'), bar = element('td', undefined, 'bar');
    const {token, place} = nameOf(shown.map.keyText, key);
    head.scope = 'row';
    head.append(element('bdi', cut(token, 40)));
    if (token !== String(place)) head.append(element('span', ' ' + place, 'quiet'));
    const span = element('span');
    if (shown.values[begin + key] < 0) span.className = 'negative';
    span.style.width = 100 * Math.min(1, size(key) / shown.top) + '%';
    bar.append(span);
    line.append(head, element('td', numberText(shown.values[begin + key])), bar);
    return line;
  }));
}

const STEPS = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
  PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -1e6], End: [0, 1e6],
};

function onKey(event) {
  const step = STEPS[event.key];
  if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  byId('live').textContent = moveTo(state.row + step[0], state.column + step[1]);
  byId('cursor').scrollIntoView({block: 'nearest', inline: 'nearest'});
}

function fill(id, options, changed) {
  const control = byId(id);
  for (const [value, text] of options) {
    const option = element('option', text);
    option.value = value;
    control.append(option);
  }
  control.addEventListener('change', () => {
    changed(control.value);
    draw();
  });
}

function fillHeads() {
  const select = byId('head'), {heads} = page.maps[state.map];
  const options = Array.from({length: heads}, (_, head) => [head, say('head', head + 1)]);
  if (heads > 1) options.push([-1, say('mean')]);
  select.replaceChildren(...options.map(([value, text]) => {
    const option = element('option', text);
    option.value = value;
    return option;
  }));
  if (heads === 1) state.head = 0;  // one head has no mean to choose
  select.value = String(Math.min(state.head, heads - 1));
}

// Fills in the choice of maps of a layer with several, such as one for each joint.
function fillParts() {
  const select = byId('part');
  if (!select) return;
  const maps = layers[layerOf(state.map)];
  select.replaceChildren(...maps.map(n => {
    const option = element('option', page.maps[n].part || '\u2013');
    option.value = n;
    return option;
  }));
  select.value = state.map;
  select.parentElement.hidden = maps.length === 1;
}

function begin() {
  fill('layer', layers.map(([first], n) => [n, page.maps[first].name]), value => {
    [state.map] = layers[Number(value)];
    fillParts();
    fillHeads();
  });
  byId('layer').value = layerOf(state.map);
  if (byId('part')) fill('part', [], value => { state.map = Number(value); });
  fillParts();
  fill('head', [], value => { state.head = Number(value); });
  fillHeads();
  fill('shading', ['root', 'largest', 'one'].map(name => [name, say(name)]),
    value => { state.shading = value; });
  const {keyText} = page.maps[state.map], keys = page.texts[keyText].tokens.length;
  state.cell = Math.max(12, Math.min(40, Math.floor(640 / keys)));
  byId('cell').value = state.cell;
  byId('cell').addEventListener('input', () => {
    state.cell = Number(byId('cell').value);
    resize();
    moveTo(state.row, state.column);
  });
  byId('map').addEventListener('keydown', onKey);
  document.addEventListener('scheme', drawPixels);
  matchMedia('print').addEventListener('change', drawPixels);
  draw();
  document.documentElement.dataset.ready = (performance.now() - began).toFixed(1);
}

begin();
