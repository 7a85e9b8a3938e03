/** One bar of the report page. */
export interface Bar {
  readonly name: string;
  /** As long as it is; what is no number has none. */
  readonly value: number;
  readonly text: string;
  readonly isBad: boolean;
}

export interface Chart {
  readonly title: string;
  readonly bars: readonly Bar[];
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
pre { overflow-x: auto; padding: 1rem; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .25rem .5rem; text-align: left; white-space: nowrap; font-weight: normal; }
td:nth-child(2) { width: 60%; }
meter { width: 100%; }
.bad { font-weight: bold; }`;

/** The result as one file that needs nothing else: what was said, and a bar for each step or route. */
export function renderPage(title: string, said: readonly string[], { title: caption, bars }: Chart): string {
  const most = Math.max(...bars.map(({ value }) => (Number.isFinite(value) ? value : 0)), Number.MIN_VALUE);
  const rows = bars.map(({ name, value, text, isBad }) => {
    const length = Number.isFinite(value) ? value / most : 0;
    const meter = `<meter min="0" max="1" value="${length.toFixed(4)}">${escaped(text)}</meter>`;
    return `<tr${isBad ? ' class="bad"' : ''}><th scope="row">${escaped(name)}</th><td>${meter}</td><td>${escaped(text)}</td></tr>`;
  });
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
<h1>${escaped(title)}</h1>
<pre>${said.map(escaped).join('\n')}</pre>
<table><caption>${escaped(caption)}</caption>
${rows.join('\n')}
</table>
</html>
`;
}
