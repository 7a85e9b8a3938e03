/** With an empty icon: browsers would request one from the application. */
const makeHead = (style: string): string =>
  '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">' +
  '<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex"><link rel="icon" href="data:,">' +
  `<link rel="stylesheet" href="${style}">`;

export const pageHtml = ({ script, style }: { script: string; style: string }): string =>
  `<!doctype html><html lang="en"><head><title>Perf</title>${makeHead(style)}<script type="module" src="${script}"></script></head>` +
  '<body><div id="app"></div><noscript><p class="lone">This page needs JavaScript. The same as text: ' +
  '<code>curl -H "Authorization: Bearer &lt;token&gt;" -H "Accept: text/plain" &lt;this address&gt;</code></p></noscript></body></html>\n';

/** For a browser without access. `base` is where the page is, relative to the requested address. */
export function refusedHtml(base: string, style: string, byToken: boolean): string {
  const text = byToken
    ? '<p>This page needs the token: the application’s own (<code>dashboard.token</code>, <code>PERF_TOKEN</code>), else the one in the log of the process, in the line “Perf dashboard”. A restart makes a new one there.</p>' +
      `<form class="row" method="get" action="${base}"><label for="token">Token</label>` +
      '<input id="token" name="token" type="password" autocomplete="off" required autofocus><button>Open</button></form>'
    : '<p>The application does not let you look at this page.</p>';
  return (
    `<!doctype html><html lang="en"><head><title>Perf: no access</title>${makeHead(`${base}${style}`)}</head>` +
    `<body><main class="lone"><h1>No access</h1>${text}</main></body></html>\n`
  );
}
