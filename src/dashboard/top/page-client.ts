import { parseArgs, type ParseArgsConfig } from 'node:util';
import { printable } from '../../core/printable.js';

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

type Options = ParseArgsConfig['options'] & object;
type Given<O extends Options> = ReturnType<typeof parseArgs<{ options: O; allowPositionals: true }>>;

interface Command<O extends Options, T> {
  readonly usage: string;
  readonly options: O;
  /** Checks the arguments; what it throws is about them. */
  readonly read: (given: Given<O>) => T;
  readonly work: (checked: T) => Promise<void> | void;
}

/** Runs a command; resolves with its exit code: 2 where its arguments are wrong, 1 where `work` throws. */
export async function runCommand<O extends Options, T>(
  args: readonly string[],
  terminal: Pick<Terminal, 'write' | 'complain'>,
  { usage, options, read, work }: Command<O, T>,
): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    terminal.write(usage);
    return 0;
  }
  let checked: T;
  try {
    checked = read(parseArgs({ args: [...args], options, allowPositionals: true }));
  } catch (error) {
    terminal.complain(`${(error as Error).message}\n\n${usage}`);
    return 2;
  }
  try {
    await work(checked);
    return 0;
  } catch (error) {
    terminal.complain(`${printLines((error as Error).message)}\n`);
    return 1;
  }
}

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
      const isFinal = status < 500;
      const isOurs = [400, 401, 403].includes(status) || (status === 404 && path !== '');
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
