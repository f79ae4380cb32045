// SPDX-License-Identifier: Apache-2.0
// Every text of the page whose contrast to its ground is below 4.5 (WCAG 2.1, 1.4.3); an expression.
(() => {
  const channels = text => {
    const numbers = text.match(/[\d.e-]+/g)?.map(Number) ?? [];
    const scale = text.startsWith('color(') ? 255 : 1;  // color(srgb r g b / a)
    const [r, g, b, a = 1] = text.startsWith('rgb') || scale === 255 ? numbers : [0, 0, 0, 0];
    return [r * scale, g * scale, b * scale, a];
  };
  const over = ([r, g, b, a], ground) =>
    [r, g, b].map((value, n) => value * a + ground[n] * (1 - a)).concat(1);
  const groundOf = element => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(channels(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((ground, layer) => over(layer, ground), [255, 255, 255, 1]);
  };
  const luminance = colour => {
    const [r, g, b] = colour.map(value => {
      const share = value / 255;
      return share <= .04045 ? share / 12.92 : ((share + .055) / 1.055) ** 2.4;
    });
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const found = [];
  let texts = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    const isShown = walker.currentNode.data.trim() && !element.closest('script, noscript') &&
      element.getClientRects().length && style.visibility === 'visible' && channels(style.color)[3] > 0;
    if (!isShown) continue;
    ++texts;
    const ground = groundOf(element), ink = over(channels(style.color), ground);
    const [a, b] = [luminance(ink), luminance(ground)].sort((x, y) => y - x);
    const contrast = (a + .05) / (b + .05);
    if (contrast < 4.5) found.push(`${contrast.toFixed(2)} <${element.tagName} class="${element.className}"> ${walker.currentNode.data.slice(0, 40)}`);
  }
  return {texts, found};
})()
