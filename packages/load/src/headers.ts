/** Set anew for each request, or of its connection: a client that is told them sends nothing. */
export const OF_CONNECTION: ReadonlySet<string> = new Set([
  'content-length',
  'transfer-encoding',
  'keep-alive',
  'upgrade',
  'expect',
]);

/** Characters that Node sends in a header: no control, nothing beyond Latin-1. */
export const isHeaderValue = (value: string): boolean => /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
