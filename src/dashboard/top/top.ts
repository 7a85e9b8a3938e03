import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { printable } from '../../core/printable.js';

const USAGE = `Shows the dashboard of a NestJS application on the terminal, again and again.

  nestjs-perf top URL [--token TOKEN] [--route NAME] [--interval SECONDS] [--once]

  URL         where the page is: http://localhost:3000/perf, or the address from the log, with its token
  --token     from the log, the line "Perf dashboard"; else the environment variable PERF_TOKEN
  --route     whose last hour is shown, such as 'GET /users/:id' (all routes together)
  --interval  seconds between two looks (2)
  --once      looks once, and ends with 1 where there is nothing to see
`;
const MAX_LINE = 1_000;
/** An answer is read so far. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Another screen, as `less` has one: what was on the terminal comes back at the end. On it, what is wider is cut: a wrapped line pushes others out. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H\u001b[J';

/** A process's terminal. */
export interface Terminal {
  write(text: string): void;
  complain(text: string): void;
  /** Height; null when it is no terminal. */
  rows(): number | null;
  readonly token: string | undefined;
  /** An answer that takes longer is none, milliseconds. */
  readonly deadlineMs: number;
  /** Aborts when the user has seen enough. */
  readonly signal: AbortSignal;
}

interface Look {
  readonly url: URL;
  readonly token: string | undefined;
  readonly intervalMs: number;
  readonly once: boolean;
}

/** Resolves with the exit code. */
export async function top(args: readonly string[], terminal: Terminal): Promise<number> {
  let look: Look | null;
  try {
    look = lookOf(args, terminal.token);
  } catch (error) {
    terminal.complain(`${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  if (look === null) {
    terminal.write(USAGE);
    return 0;
  }
  const isScreen = terminal.rows() !== null && !look.once;
  if (isScreen) terminal.write(ENTER);
  const complaint = await watch(look, terminal).finally(() => isScreen && terminal.write(LEAVE));
  if (complaint !== null) terminal.complain(`${complaint}\n`);
  return complaint === null ? 0 : 1;
}

/** Until the user has seen enough: then null, else why there is nothing to see. */
async function watch(look: Look, terminal: Terminal): Promise<string | null> {
  for (;;) {
    const { text, isFinal, failed } = await ask(look, terminal);
    if (terminal.signal.aborted) return null;
    if (isFinal || (look.once && failed)) return text;
    const rows = terminal.rows();
    if (rows === null || look.once) terminal.write(`${text}\n`);
    else terminal.write(HOME + text.split('\n', rows - 1).join('\n'));
    if (look.once) return null;
    await delay(look.intervalMs, undefined, { signal: terminal.signal }).catch(() => {});
    if (terminal.signal.aborted) return null;
  }
}

/** `isFinal`: asking again would not help. */
async function ask(
  { url, token, once }: Look,
  { signal, deadlineMs }: Terminal,
): Promise<{ text: string; isFinal?: boolean; failed?: boolean }> {
  const again = once ? '' : ' Trying again.';
  const headers = { accept: 'text/plain', ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  // A timer of our own: Node 20 forgets the signal of one that nobody else holds.
  const given = new AbortController();
  const giveUp = (): void => given.abort();
  const timer = setTimeout(giveUp, deadlineMs);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    const response = await fetch(url, { headers, signal: given.signal });
    const body = safe(await textOf(response));
    if (response.status === 200 && response.headers.get('content-type')?.startsWith('text/plain') === true) {
      return { text: body };
    }
    if (response.status === 429 || response.status >= 500) {
      return { text: `${url.href} answers ${response.status}.${again}`, failed: true };
    }
    const reason =
      response.status === 401 || response.status === 403 ? body.trim() : 'There is no dashboard at this address.';
    return { text: `${url.href} answers ${response.status}. ${reason}`, isFinal: true };
  } catch (error) {
    const { message, cause } = error as Error & { cause?: { code?: string } };
    const reason = given.signal.aborted ? `nothing for ${deadlineMs / 1_000} s` : (cause?.code ?? message);
    return { text: safe(`${url.href} does not answer (${reason}).${again}`), failed: true };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', giveUp);
  }
}

async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new Error(`its answer is longer than ${MAX_BYTES / 1024 / 1024} MiB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** An answer cannot command the terminal. */
const safe = (text: string): string =>
  text
    .split('\n')
    .map((line) => printable(line, MAX_LINE))
    .join('\n')
    .trimEnd();

/** Null: help is wanted. Throws for what cannot be. */
function lookOf(args: readonly string[], tokenOfEnvironment: string | undefined): Look | null {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      token: { type: 'string' },
      route: { type: 'string' },
      interval: { type: 'string', default: '2' },
      once: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return null;
  const [command, address, ...more] = positionals;
  if (command !== 'top' || address === undefined || more.length > 0) throw new Error('Say `top` and one URL.');
  if (!/^https?:\/\//.test(address) || !URL.canParse(address))
    throw new Error(`The URL must begin with http:// or https://, got ${JSON.stringify(address)}.`);
  const seconds = Number(values.interval);
  if (!(seconds >= 0.5 && seconds <= 3_600))
    throw new Error(`--interval must be a number of seconds from 0.5 to 3600, got ${JSON.stringify(values.interval)}.`);
  const url = new URL(address);
  const token = values.token ?? url.searchParams.get('token') ?? tokenOfEnvironment;
  url.search = '';
  if (values.route !== undefined) url.searchParams.set('route', values.route);
  url.hash = '';
  if (url.pathname === '/') url.pathname = '/perf';
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return { url, token, intervalMs: seconds * 1_000, once: values.once };
}
