// SPDX-License-Identifier: Apache-2.0
// Lines from queries (left) to keys (right): the largest weights, and those of the chosen query.
'use strict';

const MOST_LINES = 400, MOST_OF_QUERY = 64, ROW = 20, WIDTH = 110;

function svg(name, attributes) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// The `most` cells of largest weight, without those that are 0. Bins of shades find them.
function largestCells(map, most) {
  const bins = new Uint32Array(1025);
  const binOf = cell => Math.ceil(1024 * Math.min(1, Math.abs(map.values[cell]) / map.top));
  for (let cell = 0; cell < map.values.length; ++cell) ++bins[binOf(cell)];
  let bin = 1024, count = bins[1024];
  while (bin > 1 && count < most) count += bins[--bin];
  const cells = [];
  for (let cell = 0; cell < map.values.length; ++cell) {
    if (map.values[cell] !== 0 && binOf(cell) >= bin) cells.push(cell);
  }
  const size = cell => Math.abs(map.values[cell]);
  return cells.sort((a, b) => size(b) - size(a) || a - b).slice(0, most);
}

function line(map, shadeOf, cell) {
  const keys = map.keys.length, row = Math.floor(cell / keys), shade = shadeOf(cell);
  const from = ROW * (row + .5), to = ROW * (cell % keys + .5), middle = WIDTH / 2;
  return svg('path', {
    d: `M0 ${from}C${middle} ${from} ${middle} ${to} ${WIDTH} ${to}`,
    class: map.values[cell] < 0 ? 'negative' : '',
    opacity: Math.max(.1, shade).toFixed(3), 'stroke-width': (.6 + 2.6 * shade).toFixed(2),
  });
}

function tokensOf(names, className) {
  const list = element('div', undefined, className);
  for (const name of names) list.append(element('bdi', cut(name, 16)));
  return list;
}

// Everything but the chosen query's lines.
function drawLines(map, shadeOf) {
  const height = ROW * Math.max(map.queries.length, map.keys.length);
  const picture = svg('svg', {width: WIDTH, height, 'aria-hidden': 'true'});
  const faint = svg('g', {class: 'faint'}), chosen = svg('g', {class: 'chosen'});
  const cells = largestCells(map, MOST_LINES);
  faint.append(...cells.map(cell => line(map, shadeOf, cell)));
  picture.append(faint, chosen);
  const queries = tokensOf(map.queries, 'queries'), keys = tokensOf(map.keys, 'keys');
  queries.addEventListener('pointermove', event => {
    const row = Array.prototype.indexOf.call(queries.children, event.target);
    if (row >= 0) moveTo(row, state.column);
  });
  byId('lines').replaceChildren(queries, picture, keys);
  byId('lines-caption').textContent = say('lines', cells.length);
}

// The lines of the chosen query, and its tokens.
function markLines(map, shadeOf, row, column, isNewRow) {
  const [queries, picture, keys] = byId('lines').children, length = map.keys.length;
  const chosen = picture.lastChild;
  if (isNewRow || !chosen.hasChildNodes()) {
    const cells = [];
    for (let cell = row * length; cell < (row + 1) * length; ++cell) {
      if (map.values[cell] !== 0) cells.push(cell);
    }
    cells.sort((a, b) => Math.abs(map.values[b]) - Math.abs(map.values[a]));
    chosen.replaceChildren(
      ...cells.slice(0, MOST_OF_QUERY).map(cell => line(map, shadeOf, cell)));
    const box = byId('lines');
    if (!box.matches(':hover')) box.scrollTop = ROW * (row + .5) - box.clientHeight / 2;
  }
  byId('lines').querySelectorAll('bdi.on').forEach(token => token.classList.remove('on'));
  queries.children[row].classList.add('on');
  keys.children[column].classList.add('on');
}
