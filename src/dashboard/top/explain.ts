import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { printable } from '../../core/printable.js';
import type { DashboardData, RouteRow } from '../view.js';
import {
  explainBlock,
  explainProblems,
  explainRoute,
  findBlock,
  findRoute,
  listKnown,
  type Surroundings,
} from './explanation.js';
import { readExcerpt } from './source-excerpt.js';
import type { Terminal } from './top.js';

export const EXPLAIN_USAGE = `Explains one thing that is slow, as one text for a person or a coding agent.

  nestjs-perf explain URL SUBJECT [--token TOKEN]

  URL       where the page is: http://localhost:3000/perf
  SUBJECT   a route ('GET /users/:id'), a block (its line, 'reports.ts:48', or 'block'), or 'verdict'
  --token   from the log, the line "Perf dashboard"; else the environment variable PERF_TOKEN
`;
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_LINE = 2_000;
const HISTORY_LOOKS = 3;
const HISTORY_WAIT_MS = 300;

type Load = (query: { filter: string; route?: string }) => Promise<DashboardData>;

/** Resolves with the exit code. */
export async function explain(args: readonly string[], terminal: Terminal): Promise<number> {
  let asked: { url: URL; token: string | undefined; subject: string };
  try {
    asked = readArguments(args, terminal.token);
  } catch (error) {
    terminal.complain(`${(error as Error).message}\n\n${EXPLAIN_USAGE}`);
    return 2;
  }
  try {
    const { url, subject } = asked;
    const around = { url, excerpt: (location: string) => readExcerpt(location, process.cwd()) };
    const text = await explainSubject(subject, (query) => load({ ...asked, query }, terminal), around);
    terminal.write(
      `${text
        .split('\n')
        .map((line) => printable(line, MAX_LINE))
        .join('\n')}\n`,
    );
    return 0;
  } catch (error) {
    terminal.complain(`${printable((error as Error).message, MAX_LINE)}\n`);
    return 1;
  }
}

function readArguments(args: readonly string[], tokenOfEnvironment: string | undefined) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { token: { type: 'string' } },
  });
  const [address, ...subject] = positionals;
  if (address === undefined || subject.length === 0 || !/^https?:\/\//.test(address) || !URL.canParse(address))
    throw new Error('Give the URL of the page, and a route, a block or `verdict`.');
  const url = new URL(address);
  const token = values.token ?? url.searchParams.get('token') ?? tokenOfEnvironment;
  [url.search, url.hash] = ['', ''];
  if (url.pathname === '/') url.pathname = '/perf';
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return { url, token, subject: subject.join(' ').trim() };
}

/** @throws with what to do */
async function load(
  { url, token, query }: { url: URL; token: string | undefined; query: Parameters<Load>[0] },
  { deadlineMs, signal }: Terminal,
): Promise<DashboardData> {
  const data = new URL('data', url);
  data.search = new URLSearchParams({ scope: 'pod', ...query }).toString();
  const given = new AbortController();
  const giveUp = (): void => given.abort();
  const timer = setTimeout(giveUp, deadlineMs);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    const headers = { accept: 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }) };
    const { status, body } = await fetch(data, { headers, signal: given.signal });
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) throw new Error(`The answer is longer than ${MAX_BYTES / 1024 / 1024} MiB.`);
      chunks.push(chunk);
    }
    const text = Buffer.concat(chunks).toString();
    if (status === 401 || status === 403)
      throw new Error(`${url.href} answers ${status}. ${text.trim().slice(0, 300)}`);
    if (status !== 200) throw new Error(`${url.href} answers ${status}. There is no dashboard at this address.`);
    return JSON.parse(text) as DashboardData;
  } catch (error) {
    if (given.signal.aborted)
      throw new Error(`${url.href} has not answered within ${deadlineMs / 1_000} s.`, { cause: error });
    if (!(error instanceof TypeError)) throw error;
    const { code, message } = (error.cause ?? error) as { code?: string; message: string };
    throw new Error(`${url.href} does not answer (${code ?? message}).`, { cause: error });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', giveUp);
  }
}

/** @throws where the subject is not there, with what there is */
async function explainSubject(subject: string, load: Load, around: Surroundings): Promise<string> {
  const data = await load({ filter: subject });
  if (subject === 'verdict') return explainProblems(data, around, null);
  const block = findRoute(data, subject) === undefined ? findBlock(data, subject) : undefined;
  const name = block === undefined ? subject : block.route;
  const opened = name === null ? null : await openRoute(name, load);
  if (block !== undefined) return explainBlock(opened?.data ?? data, block, around);
  if (opened !== null) return explainRoute(opened.data, opened.route, around);
  if (data.sections.now.some(({ text }) => text.includes(subject))) return explainProblems(data, around, subject);
  throw new Error(`Nothing is known of "${subject}". There are: ${listKnown(data)}, verdict.`);
}

/** The route with its calls and its last hour; null where the process has no request of it. */
async function openRoute(name: string, load: Load): Promise<{ data: DashboardData; route: RouteRow } | null> {
  const route = findRoute(await load({ filter: name }), name);
  if (route === undefined) return null;
  for (let look = 1; ; look++) {
    const data = await load({ filter: name, route: route.id });
    // The server reads a history in the background.
    if (look === HISTORY_LOOKS || (data.detail?.past.rows.length ?? 0) > 0)
      return { data, route: findRoute(data, name) ?? route };
    await delay(HISTORY_WAIT_MS);
  }
}
