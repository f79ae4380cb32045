// SPDX-License-Identifier: Apache-2.0
// The script of every page: the switch of light and dark. It begins as the system is set.
'use strict';

document.getElementById('scheme').addEventListener('click', () => {
  const root = document.documentElement;
  const dark = root.dataset.scheme ? root.dataset.scheme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.scheme = dark ? 'light' : 'dark';
  document.dispatchEvent(new Event('scheme'));
});
matchMedia('(prefers-color-scheme: dark)').addEventListener(
  'change', () => document.dispatchEvent(new Event('scheme')));
