// A picture of rows as SVG.

const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Escapes a text for XML. Leaves out characters that XML does not allow. */
export function escaped(text) {
  // eslint-disable-next-line no-control-regex
  const clean = String(text).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '').toWellFormed();
  return clean.replace(/[&<>"']/g, (char) => ESCAPES[char]);
}

const number = (value) => String(Math.round(value * 100) / 100);

function rectangle({ left, right, top, bottom, fill, title }) {
  const width = Math.max(right - left, 0.5);
  const said = title ? `<title>${escaped(title)}</title>` : '';
  return `<rect x="${number(left)}" y="${number(top)}" width="${number(width)}" height="${number(bottom - top)}" fill="${escaped(fill)}">${said}</rect>`;
}

function text(x, y, fill, words, more = '') {
  return `<text x="${number(x)}" y="${number(y)}" fill="${escaped(fill)}"${more}>${escaped(words)}</text>`;
}

/**
 * Draws rows with labels and bars. Bars lie right of the labels and end at the edge of the picture.
 * `named` are bars that have room for their names.
 */
export function svg({ title, width, labelWidth, height, rows, ticks, colours }) {
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${number(width)}" height="${number(height)}" viewBox="0 0 ${number(width)} ${number(height)}" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title>`,
    `<defs><clipPath id="bars"><rect x="${number(labelWidth)}" y="0" width="${number(width - labelWidth)}" height="${number(height)}"/></clipPath></defs>`,
    `<rect width="100%" height="100%" fill="${escaped(colours.ground)}"/>`,
  ];
  for (const { x, label } of ticks) {
    lines.push(`<line x1="${number(x)}" y1="0" x2="${number(x)}" y2="${number(height)}" stroke="${escaped(colours.line)}"/>`);
    lines.push(text(x + 3, 14, colours.faint, label));
  }
  for (const { label, top, height: high, bars } of rows) {
    lines.push(text(6, top + high - 5, colours.text, label));
    lines.push('<g clip-path="url(#bars)">');
    for (const bar of bars) {
      lines.push(rectangle(bar));
      if (bar.name) lines.push(text(bar.left + 4, bar.bottom - 5, bar.ink, bar.name));
    }
    lines.push('</g>');
  }
  lines.push('</svg>');
  return `${lines.join('\n')}\n`;
}
