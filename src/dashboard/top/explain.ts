import { parseArgs } from 'node:util';
import { printable } from '../../core/printable.js';
import type { BlockRow, DashboardData, RouteRow } from '../view.js';
import type { Terminal } from './top.js';

export const EXPLAIN_USAGE = `Explains one thing that is slow, as one text for a person or a coding agent.

  nestjs-perf explain URL SUBJECT [--token TOKEN]

  URL       where the page is: http://localhost:3000/perf
  SUBJECT   a route ('GET /users/:id'), a block (its line, 'reports.ts:48', or 'block'), or 'verdict'
  --token   from the log, the line "Perf dashboard"; else the environment variable PERF_TOKEN
`;
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_LINE = 2_000;

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
    const data = await load(asked, terminal);
    const text = explanation(data, asked.subject, asked.url);
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
  { url, token, subject }: { url: URL; token: string | undefined; subject: string },
  { deadlineMs, signal }: Terminal,
): Promise<DashboardData> {
  const data = new URL('data', url);
  data.searchParams.set('route', subject);
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
export function explanation(data: DashboardData, subject: string, url: URL): string {
  const routes = [...data.routes, ...(data.found ?? [])];
  const route = routes.find(({ name }) => name === subject);
  if (route !== undefined) return explainRoute(data, route, url);
  if (subject === 'verdict') return explainProblems(data);
  const blocks = data.sections.blocks;
  const block =
    subject === 'block' || subject === ''
      ? blocks.toSorted((a, b) => b.totalMs - a.totalMs)[0]
      : blocks.find(({ id, location }) => `block ${id}` === subject || location?.includes(subject) === true);
  if (block !== undefined) return explainBlock(block, data);
  const problem = data.sections.now.find(({ text }) => text.includes(subject));
  if (problem !== undefined)
    return [`# ${problem.text}`, '', ...verify('the sentence above is gone from the page')].join('\n');
  const known = [
    ...routes.slice(0, 5).map(({ name }) => name),
    ...blocks.slice(0, 3).flatMap(({ location }) => location ?? []),
  ];
  throw new Error(`Nothing is known of "${subject}". There are: ${known.join(', ') || 'no routes yet'}, verdict.`);
}

function explainRoute(data: DashboardData, route: RouteRow, url: URL): string {
  const [mean, p50, p95, p99, max] = route.ms;
  const { time, count, errors = 0, blockedMs = 0, handler } = route;
  const [own, upstreamMs, loopMs] = time ?? [null, 0, 0];
  const detail = data.detail?.id === route.id ? data.detail : null;
  const findings = data.sections.now.filter(({ text }) => text.includes(route.name));
  const blocks = data.sections.blocks.filter((block) => block.route === route.name);
  return [
    `# ${route.name}${handler === undefined ? '' : ` (${handler})`}`,
    '',
    `Since the process started (${when(data.process.startedAt)}, release ${data.process.release ?? 'unknown'}): ${count} requests, ${errors} failed.`,
    `Duration: mean ${ms(mean)}, p50 ${ms(p50)}, p95 ${ms(p95)}, p99 ${ms(p99)}, max ${ms(max)}.`,
    ...(time === undefined
      ? []
      : [
          `A request takes ${own === null ? 'an unknown time' : ms(own)} of the main thread itself, waits ${ms(upstreamMs)} for upstreams and ${ms(loopMs)} for the loop.`,
        ]),
    ...(detail?.upstream ?? []).map(
      ({ target, callsPerRequest, wallMs }) =>
        `- ${target}: ${callsPerRequest.toFixed(1)} calls a request, ${ms(wallMs)}${callsPerRequest >= 3 ? ' (many calls: an N+1?)' : ''}`,
    ),
    ...(findings.length === 0 ? [] : ['', 'What is wrong now:', ...findings.map(({ text }) => `- ${text}`)]),
    ...(blockedMs === 0 ? [] : ['', `It has blocked the event loop for ${ms(blockedMs)}:`]),
    ...blocks.map((block) => `- ${blockLine(block)}`),
    ...blocks
      .slice(0, 1)
      .flatMap(({ stack, curl }) => [
        ...stack.slice(0, 8).map((line) => `    ${line}`),
        ...(curl === null ? [] : [`    ${curl}`]),
      ]),
    '',
    ...verify(
      `\`npx nestjs-perf explain ${url.href} '${route.name}'\` shows a p95 below ${ms(p95)}`,
      `a contract in a test holds: expectWork(app, …), so that it stays so`,
    ),
  ].join('\n');
}

function explainBlock(block: BlockRow, data: DashboardData): string {
  const { stack, curl, waited, waiters, gcMs } = block;
  return [
    `# ${blockLine(block)}`,
    '',
    `Last at ${when(block.at)}, ${block.count} times since the process started (release ${data.process.release ?? 'unknown'}), the longest ${ms(block.maxMs)}.`,
    `Cause: ${block.cause}${gcMs > 0 ? `, ${ms(gcMs)} of it collection of garbage` : ''}. ${waited} requests waited${waiters.length === 0 ? '' : `: ${waiters.slice(0, 5).join(', ')}`}.`,
    '',
    'Stack:',
    ...stack.map((line) => `    ${line}`),
    ...(curl === null ? [] : ['', 'Send the request again:', `    ${curl}`]),
    '',
    ...verify(
      'the request above no longer blocks: the page has no new block of this line',
      'what computes for long runs in a worker thread (@Offload) or in pieces',
    ),
  ].join('\n');
}

function explainProblems({ sections: { now: problems } }: DashboardData): string {
  if (problems.length === 0) return 'Nothing is wrong now: no verdict is open, and no figure is out of its bounds.';
  return ['# What is wrong now', '', ...problems.map(({ text, section }) => `- ${text} [${section}]`)].join('\n');
}

const blockLine = ({ route, handler, proven, location, durationMs }: BlockRow): string =>
  `${route ?? 'Work outside of requests'}${handler === null ? '' : ` (${handler})`} ${proven ? 'blocks' : 'may block'} the event loop for ${ms(durationMs)}${location === null ? '' : ` at ${location}`}`;

const verify = (...what: string[]): string[] => ['Verify after the change:', ...what.map((one) => `- ${one}`)];
const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
const when = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
