import { printable } from '../../core/printable.js';

/** A process's terminal. */
export interface Terminal {
  write(text: string): void;
  complain(text: string): void;
  /** Height; null when it is no terminal. */
  rows(): number | null;
  readonly token: string | undefined;
  /** A request fails after so long without its whole answer, milliseconds. */
  readonly deadlineMs: number;
  /** Aborts when the user has seen enough. */
  readonly signal: AbortSignal;
}

/** An answer without figures. `isFinal`: the next request would get the same. */
export class PageError extends Error {
  constructor(
    message: string,
    readonly isFinal: boolean,
  ) {
    super(message);
  }
}

const MAX_BYTES = 16 * 1024 * 1024;
const MAX_LINE = 2_000;

/** Makes an answer's text harmless for a terminal, line by line. */
export const printLines = (text: string): string =>
  text
    .split('\n')
    .map((line) => printable(line, MAX_LINE))
    .join('\n')
    .trimEnd();

/**
 * Runs a command: 2 where its arguments are wrong, 1 where `work` throws.
 * @param read the arguments; null where help is wanted. What it throws is about them
 */
export async function runCommand<T>(
  usage: string,
  terminal: Pick<Terminal, 'write' | 'complain'>,
  read: () => T | null,
  work: (given: T) => Promise<void> | void,
): Promise<number> {
  let given: T | null;
  try {
    given = read();
  } catch (error) {
    terminal.complain(`${(error as Error).message}\n\n${usage}`);
    return 2;
  }
  try {
    if (given === null) terminal.write(usage);
    else await work(given);
    return 0;
  } catch (error) {
    terminal.complain(`${printLines((error as Error).message)}\n`);
    return 1;
  }
}

/** The page of one application. */
export class PageClient {
  readonly url: URL;
  private readonly token: string | undefined;

  /** `token`: of the command line; else that of the address or of the terminal. @throws for what is no address */
  constructor(
    address: string,
    token: string | undefined,
    private readonly terminal: Terminal,
  ) {
    if (!/^https?:\/\//.test(address) || !URL.canParse(address))
      throw new Error(`The URL must begin with http:// or https://, got ${JSON.stringify(address)}.`);
    const url = new URL(address);
    this.token = token ?? url.searchParams.get('token') ?? terminal.token;
    [url.search, url.hash] = ['', ''];
    if (url.pathname === '/') url.pathname = '/perf';
    if (!url.pathname.endsWith('/')) url.pathname += '/';
    this.url = url;
  }

  /** Reads `path` as `type`, which takes `workMs` longer than other answers. @throws PageError */
  async read(path: string, type: 'text/plain' | 'application/json', workMs = 0): Promise<string> {
    const { terminal, token, url } = this;
    const deadlineMs = terminal.deadlineMs + workMs;
    const headers = { accept: type, ...(token !== undefined && { authorization: `Bearer ${token}` }) };
    // `AbortSignal.timeout()` would be collected on Node 20, since `fetch` references its signal weakly.
    const given = new AbortController();
    const giveUp = (): void => given.abort();
    const timer = setTimeout(giveUp, deadlineMs);
    terminal.signal.addEventListener('abort', giveUp, { once: true });
    try {
      const response = await fetch(new URL(path, url), { headers, signal: given.signal });
      const text = await readText(response);
      const { status } = response;
      if (status === 200 && response.headers.get('content-type')?.startsWith(type) === true) return text;
      const isFinal = status !== 429 && status < 500;
      const isOurs = [400, 401, 403, 429].includes(status) || (status === 404 && path !== '');
      const reason = isOurs ? printLines(text).slice(0, 300) : isFinal ? 'There is no dashboard at this address.' : '';
      throw new PageError(`${url.href} answers ${status}. ${reason}`.trimEnd(), isFinal);
    } catch (error) {
      if (error instanceof PageError) throw error;
      const { message, cause } = error as Error & { cause?: { code?: string } };
      const reason = given.signal.aborted ? `nothing for ${deadlineMs / 1_000} s` : (cause?.code ?? message);
      throw new PageError(printLines(`${url.href} does not answer (${reason}).`), false);
    } finally {
      clearTimeout(timer);
      terminal.signal.removeEventListener('abort', giveUp);
    }
  }
}

async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new Error(`its answer is longer than ${MAX_BYTES / 1024 / 1024} MiB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
